"""Count where the operations of constrained forward dynamics go: the Stewart platform.

    python benchmarks/constraint_operations.py

Counts do not depend on the machine; a product that only one sum needs counts with that sum, as one
fused multiply-add. Each part is what the program grows by when it also has to provide that part:
common subexpressions count once.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import casadi
import numpy as np
from operation_counts import IGNORED, KINDS, symbols

import remora as rm
from remora.algebra import orthogonal
from remora.algebra.orthogonal import SemiNormal
from remora.dynamics.constraints import articulated_loops
from remora.dynamics.constraints.row_sizes import row_sizes
from remora.dynamics.joint_arrays import LoadedState

EXAMPLES = Path(__file__).parents[1] / "examples"


def parts(robot: rm.Robot) -> dict[str, list[np.ndarray]]:
    """Return what each part of the algorithm computes, on symbols, in order."""
    q, v, tau = (symbols(n, k) for n, k in (("q", robot.nq), ("v", robot.nv), ("t", robot.nv)))
    of = articulated_loops.response(robot, LoadedState(q, v, tau))
    left, a = of.accelerations()
    vdots = [part.vdot for part in left]
    b = -np.concatenate([loop.rate(a, of.sites[0].ground, vdots) for loop in of.loops])
    rows = of.rows
    assert isinstance(rows, SemiNormal)
    size = row_sizes(robot, of.loops, [x.X for x in of.bodies], [x.S for x in of.bodies], rows.w)
    products = (rows.Y.T @ (rows.w[:, None] * rows.Y))[np.triu_indices(rows.Y.shape[1])]
    x, _, _ = orthogonal.minimum_norm(rows, b)
    return {
        "inputs": [q, v, tau],
        "the tree": vdots,
        "accelerations of the constraints": [b],
        "wrenches of unit multipliers, Y": [rows.Y, rows.w],
        "sizes of the rows": [size],
        "products, the upper half of GM⁻¹Gᵀ": [products],
        "their factors": [rows.R, rows.reciprocal],
        "solution and its correction": [x],
        "motion of the joints": of.motion(x)[0],
    }


def operations(made: casadi.Function) -> int:
    """Return the number of operations of a function, with fused multiply-adds."""
    ops = [made.instruction_id(k) for k in range(made.n_instructions())]
    users: list[list[int]] = [[] for _ in ops]
    origin: dict[int, int] = {}
    for k, op in enumerate(ops):
        if op in (casadi.OP_INPUT, casadi.OP_CONST):
            origin[made.instruction_output(k)[0]] = k
            continue
        for place in made.instruction_input(k):
            users[origin[place]].append(k)
        if op != casadi.OP_OUTPUT:
            origin[made.instruction_output(k)[0]] = k
    fused: set[int] = set()
    for k, op in enumerate(ops):
        if op in KINDS["mul"] and len(users[k]) == 1:
            by = users[k][0]
            if ops[by] in (casadi.OP_ADD, casadi.OP_SUB):
                fused.add(by)
    return sum(op not in IGNORED for op in ops) - len(fused)


def main() -> None:
    robot = runpy.run_path(str(EXAMPLES / "42_stewart_platform.py"))["platform"]()
    found = parts(robot)
    inputs = [casadi.vertcat(*x.tolist()) for x in found.pop("inputs")]
    wanted, before, tree = list[float](), 0, 0
    for name, arrays in found.items():
        wanted += [e for x in arrays for e in np.asarray(x).reshape(-1).tolist()]
        made = casadi.Function("f", inputs, [casadi.cse(casadi.vertcat(*wanted))])
        total = operations(made)
        tree = tree or total
        print(f"{name:36} {total - before:7,}   {(total - before) / tree:5.2f}")
        before = total
    print(f"{'all':36} {before:7,}   {before / tree:5.2f}")


if __name__ == "__main__":
    main()
