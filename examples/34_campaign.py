"""A Monte Carlo campaign: 200 runs of a reach with an uncertain payload, stored and reported.

    python examples/34_campaign.py

See docs/campaigns.md. It needs the extra `campaign`: pip install 'remora[campaign]'.
"""

import tempfile
from pathlib import Path

import numpy as np

import remora as rm

with tempfile.TemporaryDirectory() as folder:
    campaign = rm.campaign("reach_payload", Path(folder) / "reach", runs=200, workers=0)
    print(campaign)

    rate, low, high = campaign.success_rate()
    print(f"success {100 * rate:.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f} %")

    for output in campaign.outputs:
        values = np.degrees(campaign[output])
        driver, (rank, _) = next(iter(campaign.drivers(output).items()))
        print(
            f"{output:22} median {np.median(values):8.4f}, 95 % {np.percentile(values, 95):8.4f} "
            f"(deg or deg/s), driven by {driver} ({rank:+.2f})"
        )

    worst = int(np.argmax(campaign["bus rate at the end"]))
    run = campaign.replay(worst)  # an ordinary recording: plot it, view it, report it
    print(
        f"worst run: {worst}, payload {campaign['flange.mass'][worst]:.1f} kg, {len(run)} samples"
    )
    print(
        "report:",
        rm.campaign_report(campaign, Path(folder) / "report.html").stat().st_size,
        "bytes",
    )
