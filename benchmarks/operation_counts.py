"""Count the arithmetic operations of each formulation, from one trace per robot.

    python benchmarks/operation_counts.py [ROBOT ...]

Operation counts do not depend on the machine. The robot's parameters are folded as constants,
products with zero and one are removed, and common subexpressions count once.
"""

from __future__ import annotations

import argparse
from collections import Counter

import casadi
import numpy as np
from rich.console import Console
from rich.table import Table

import remora as rm
from remora.algebra.array_ops import asarray

KINDS = {
    "mul": (casadi.OP_MUL, casadi.OP_SQ, casadi.OP_TWICE),
    "add": (casadi.OP_ADD, casadi.OP_SUB, casadi.OP_NEG),
    "div": (casadi.OP_DIV, casadi.OP_INV),
    "sin, cos": (casadi.OP_SIN, casadi.OP_COS),
    "sqrt": (casadi.OP_SQRT,),
}
IGNORED = (casadi.OP_INPUT, casadi.OP_OUTPUT, casadi.OP_CONST)


def symbols(name: str, n: int):
    return asarray(casadi.SX.sym(name, n)).reshape(-1) if n else np.zeros(0)


def count(function, robot: rm.Robot) -> Counter[str]:
    """Trace function(q, v, x) and count its operations by kind."""
    arguments = [symbols("q", robot.nq), symbols("v", robot.nv), symbols("x", robot.nv)]
    result = casadi.vertcat(*np.asarray(function(*arguments)).reshape(-1).tolist())
    inputs = [casadi.vertcat(*a.tolist()) for a in arguments]
    traced = casadi.Function("f", inputs, [casadi.cse(result)])
    names = {op: name for name, ops in KINDS.items() for op in ops}
    counts: Counter[str] = Counter()
    for k in range(traced.n_instructions()):
        op = traced.instruction_id(k)
        if op not in IGNORED:
            counts[names.get(op, "other")] += 1
    return counts


def cases(robot: rm.Robot):
    for name, row in rm.dynamics.FORMULATIONS.items():
        if row.hybrid is not None:
            yield (
                f"forward, {name}",
                lambda q, v, x, f=name: rm.forward_dynamics(robot, q, v, x, formulation=f),
            )
    for name, row in rm.dynamics.FORMULATIONS.items():
        if row.inverse is not None:
            yield (
                f"inverse, {name}",
                lambda q, v, x, f=name: rm.inverse_dynamics(robot, q, v, x, formulation=f),
            )
    yield "mass matrix", lambda q, v, x: rm.mass_matrix(robot, q)
    yield "Coriolis matrix", lambda q, v, x: rm.coriolis_matrix(robot, q, v)
    yield "poses", lambda q, v, x: rm.poses(robot, q)
    yield "Jacobian of a tip", lambda q, v, x: rm.jacobian(robot, q, len(robot.bodies) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("robots", nargs="*", default=["servicer", "vt18_satellite"])
    console = Console(width=100)
    for name in parser.parse_args().robots:
        robot = rm.load(name)
        table = Table(title=f"{robot.name}: {len(robot.bodies)} bodies, nv = {robot.nv}")
        table.add_column("function")
        for kind in (*KINDS, "other", "all"):
            table.add_column(kind, justify="right")
        for label, function in cases(robot):
            counts = count(function, robot)
            row = [counts[kind] for kind in (*KINDS, "other")]
            table.add_row(label, *(f"{n:,}" for n in (*row, sum(row))))
        console.print(table)


if __name__ == "__main__":
    main()
