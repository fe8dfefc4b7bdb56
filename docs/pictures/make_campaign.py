"""Make the picture of docs/campaigns.md: `python docs/pictures/make_campaign.py`.

Needs the extra `campaign`, and Chromium, which is asked for a screenshot.
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import remora as rm

HERE = Path(__file__).resolve().parent
#: Width of the page, and the part of it that is shown, px.
WIDTH, HEIGHT = 1000, 1960

with tempfile.TemporaryDirectory() as folder:
    campaign = rm.campaign("reach_payload", Path(folder) / "reach", runs=5000, workers=0)
    page = rm.campaign_report(campaign, Path(folder) / "report.html")
    shot = Path(folder) / "page.png"
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--hide-scrollbars",
         "--disable-background-networking", f"--user-data-dir={folder}/profile",
         f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}", page.as_uri()],
        check=True, capture_output=True,
    )  # fmt: skip
    picture = Image.open(shot).convert("RGB").quantize(128)
    picture.save(HERE / "campaign.png", optimize=True)
    print(HERE / "campaign.png", (HERE / "campaign.png").stat().st_size, "bytes")
