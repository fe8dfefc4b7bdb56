"""Speed of the analysis kernels: a manipulability map and a workspace in space.

    python benchmarks/analysis.py            # one core for the map, two for the workspace
    python benchmarks/analysis.py --gpu      # the workspace's kernel on a GPU, too

Wall-clock and processor time; the best of three, kernels compiled before.
"""

import argparse
import time

import numpy as np

import remora as rm

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--gpu", action="store_true", help="run the workspace on a GPU, too")
parser.add_argument("--samples", type=int, default=10_000_000)
options = parser.parse_args()

robot = rm.load("servicer")
q = rm.neutral(robot)
q[8:] = np.radians([0, 35, 0, 70, 0, 45, 0])


def timed(name, function):
    function()  # compiles
    found = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        function()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = min(found)
    print(f"{name:55} {wall:7.3f} s, processor {cpu:7.3f} s")


grid = {"shoulder_pitch": np.linspace(-2, 2, 1000), "elbow_pitch": np.linspace(-2.5, 2.5, 1000)}
for measure in ("volume", "smallest"):
    timed(
        f"map 1000 x 1000, floating, {measure}, one core",
        lambda measure=measure: rm.analysis.manipulability_map(
            robot, "tool", grid, measure, "floating", q=q
        ),
    )
for refine in (0, 6):
    timed(
        f"workspace, {options.samples:.0e} samples, {refine} rounds, two cores",
        lambda refine=refine: rm.workspace(
            robot, "tool", samples=options.samples, cells=100, refine=refine, threads=2
        ),
    )
    if options.gpu:
        timed(
            f"workspace, {options.samples:.0e} samples, {refine} rounds, GPU",
            lambda refine=refine: rm.workspace(
                robot, "tool", samples=options.samples, cells=100, refine=refine, target="cuda"
            ),
        )
if options.gpu:
    one = rm.workspace(robot, "tool", samples=1_000_000, cells=60, refine=0)
    two = rm.workspace(robot, "tool", samples=1_000_000, cells=60, refine=0, target="cuda")
    same = one.counts.shape == two.counts.shape and np.array_equal(one.counts, two.counts)
    print("the GPU counts the same samples in every cell:", same)
