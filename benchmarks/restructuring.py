"""Two source trees side by side: first compile, cached load, single call, batch, import.

    python benchmarks/restructuring.py OLD_SRC NEW_SRC

Each figure is the best of several processes, the trees taking turns.
"""

import json
import os
import subprocess
import sys
import tempfile

CODE = """
import json, sys, time
begin = time.perf_counter()
import remora as rm
figures = {"import remora, s": time.perf_counter() - begin}
import numpy as np
robot = rm.load("servicer")
q, v = rm.random_state(robot, 1)
tau = np.ones(robot.nv)
begin = time.perf_counter()
fd = rm.compile(rm.forward_dynamics, robot)
fd(q, v, tau)
figures[f"{sys.argv[1]} kernel of forward dynamics, s"] = time.perf_counter() - begin
def best(call, count):
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - begin) / count)
    return min(times)
figures["one call, us"] = 1e6 * best(lambda: fd(q, v, tau), 20000)
many = rm.random_state(robot, 2, batch=(4096,))
figures["batch of 4096, us per state"] = 1e6 / 4096 * best(lambda: fd(*many, tau), 50)
satellite = rm.load("vt18_satellite")
x, u = rm.random_state(satellite, 1)
run = lambda: rm.simulate(satellite, x, 0.1 * u, 70.0)
run()
figures["rm.simulate, VT18, 70 s, ms"] = 1e3 * best(run, 3)
start = rm.neutral(robot)
run = lambda: rm.simulate(robot, start, np.r_[np.zeros(6), np.full(7, 0.05)], 5.0)
run()
figures["rm.simulate, servicer with limits, 5 s, ms"] = 1e3 * best(run, 3)
print(json.dumps(figures))
"""


def measured(source: str, cache: str, which: str) -> dict[str, float]:
    """Return the figures of one process."""
    environment = {**os.environ, "PYTHONPATH": source, "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-c", CODE, which]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(out.stdout.splitlines()[-1])


def main() -> None:
    """Print the table."""
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(3):
        for own, source in zip(best, sys.argv[1:3], strict=True):
            with tempfile.TemporaryDirectory() as cache:
                for which in ("first", "cached"):
                    for name, figure in measured(source, cache, which).items():
                        own[name] = min(own.get(name, figure), figure)
    print("| | before | after | ratio |\n| --- | ---: | ---: | ---: |")
    for name, before in best[0].items():
        after = best[1][name]
        print(f"| {name} | {before:.3g} | {after:.3g} | {after / before:.2f} |")


if __name__ == "__main__":
    main()
