"""Arguments are judged before the surroundings: missing packages hide no wrong argument."""

import subprocess
import sys
import textwrap

WITHOUT_PACKAGES = """
import sys

for name in ("matplotlib", "matplotlib.pyplot", "viser", "distributed", "pandas", "cupy"):
    sys.modules[name] = None  # as if it were not installed
import numpy as np
import remora as rm

robot = rm.load("vt18_satellite")
quiet = rm.Record(progress=False)
run = rm.simulate(robot, rm.neutral(robot), np.zeros(robot.nv), 0.1, record=quiet)
calls = {
    "nonsense": lambda: run.plot("nonsense"),
    "matplotlib": lambda: run.plot("q"),
    "no quantity of a run": lambda: run.to_pandas("nonsense"),
    "needs pandas": lambda: run.to_pandas("q"),
    "no scene": lambda: rm.view(run, scene="nonsense"),
    "port=-3": lambda: rm.view(run, port=-3),
    "needs viser": lambda: rm.view(run),
    "no target": lambda: rm.campaign("reach_payload", "never", target="gpu"),
    "workers must be": lambda: rm.campaign("reach_payload", "never", workers=-1),
    "campaigns need": lambda: rm.campaign("reach_payload", "never"),
    "needs CuPy": lambda: rm.workspace(rm.load("servicer"), "tool", target="cuda", samples=10),
}
for words, call in calls.items():
    try:
        call()
    except rm.RemoraError as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError(words)
print("done")
"""


def test_a_wrong_argument_is_named_where_packages_are_missing(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_PACKAGES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == "done\n", done.stderr
    assert list(tmp_path.iterdir()) == []
