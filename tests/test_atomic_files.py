"""Files are written whole or not at all: a full disk leaves what was there before."""

import contextlib
import os
import stat

import numpy as np
import pytest

import remora as rm
from remora.atomic_files import replacing, write_text
from remora.codegen.export.random_c import write_random_c

resource = pytest.importorskip("resource")
signal = pytest.importorskip("signal")

LEAST = 400
ROBOT = rm.load("vt18_satellite")


@contextlib.contextmanager
def full_disk():
    """The operating system refuses every byte of a file after the first LEAST."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LEAST, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def run():
    return rm.simulate(
        ROBOT, rm.neutral(ROBOT), np.zeros(ROBOT.nv), 0.1, record=rm.Record(progress=False)
    )


WRITERS = {
    "robot.yaml": lambda file: rm.save_robot(ROBOT, file),
    "run.html": lambda file: rm.save_html(run(), file),
    "report.html": lambda file: rm.report(run(), file, animation=False),
    "run.csv": lambda file: run().to_csv(file),
    "run.npz": lambda file: run().to_npz(file),
    "system.svg": lambda file: rm.System(ROBOT).diagram().save(file),
    "system.png": lambda file: rm.System(ROBOT).diagram().save(file),
    "remora_random.h": lambda file: write_random_c(file.parent),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_destroys_nothing(name, tmp_path):
    if name == "run.html":
        pytest.importorskip("viser")
    if name in ("report.html", "system.png"):
        pytest.importorskip("matplotlib")
    file = tmp_path / name
    WRITERS[name](file)
    before = file.read_bytes()
    assert len(before) > LEAST
    beside = {path.name for path in tmp_path.iterdir()}
    with full_disk(), pytest.raises(rm.RemoraError, match=r"cannot be written: File too large"):
        WRITERS[name](file)
    assert file.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == beside


def test_permissions_links_and_devices_are_kept(tmp_path):
    file, link = tmp_path / "a.txt", tmp_path / "link.txt"
    write_text(file, "one")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask
    file.chmod(0o640)
    link.symlink_to(file)
    write_text(link, "two\n")
    assert link.is_symlink()
    assert file.read_bytes() == b"two\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    write_text("/dev/null", "three")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_refusals(tmp_path):
    with pytest.raises(rm.RemoraError, match="cannot be written: it is a folder; name a file"):
        write_text(tmp_path, "")
    with pytest.raises(rm.RemoraError, match="cannot be written: No such file or directory"):
        write_text(tmp_path / "none" / "a.txt", "")
    write_text(tmp_path / "none" / "a.txt", "one", parents=True)
    with contextlib.suppress(KeyboardInterrupt), replacing(tmp_path / "none" / "a.txt") as part:
        part.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt
    assert [path.read_text("utf-8") for path in (tmp_path / "none").iterdir()] == ["one"]
