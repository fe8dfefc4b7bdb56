"""Benchmark of the derivatives of dynamics against Pinocchio.

    python benchmarks/derivatives.py [--json FILE]

Derivatives of forward and inverse dynamics (with respect to q, v, and tau or vdot) of the servicer
and the two-armed robot: one state per call from Python, and a batch on one thread. Pinocchio has no
loop over a batch for them, so its call runs in a Python loop, and the overhead of such a call is
estimated. Rounds are interleaved, the minimum is reported, and results are compared first.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from peer_libraries import Pinocchio, converted
from rich.console import Console
from rich.table import Table

import remora as rm
from dynamics import two_armed
from remora.algebra.array_ops import asarray
from remora.cli import kernel_timing
from remora.cli.kernel_timing import Case, States, random_states
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Signature
from remora.codegen.ir.trace import trace

#: Timed functions: the differentiated function, its last argument, and Pinocchio's call.
TIMED = {
    "forward_dynamics_derivatives": ("forward_dynamics", "tau", "computeABADerivatives"),
    "inverse_dynamics_derivatives": ("inverse_dynamics", "vdot", "computeRNEADerivatives"),
}
NOTES = (
    "derivatives: three matrices, by q (tangent), v, and tau or vdot; float64, one thread",
    "Remora's batch goes to given arrays; so many matrices leave the caches: at 13 degrees of"
    " freedom a state's three take 4 kB",
    "Pinocchio's matrices lie in its data: every call writes over those of the call before, which"
    " stay in the cache; Remora's one call returns new arrays",
    "Pinocchio, call taken off: less the time of the same call for a robot with one joint, which is"
    " nearly all call; a little too much is taken off, in Pinocchio's favour",
    "Pinocchio: the wheel of PyPI, built for any x86-64, not for this processor",
)


def robots() -> dict[str, rm.Robot]:
    return {"servicer, 7 joints": rm.load("servicer"), "two arms, 2x7 joints": two_armed()}


# Timed cases -------------------------------------------------------------------------------------


def remora_cases(robot: rm.Robot, function: str, states: States) -> Iterator[Case]:
    """Yield one call and the batch."""
    kernel = kernel_timing.kernel_of(robot, function)
    alone = tuple(np.ascontiguousarray(a[0]) for a in (states.q, states.v, states.x))
    n = len(states.q)
    error = deviation(
        kernel(*alone),
        getattr(rm if hasattr(rm, function) else rm.dynamics, function)(robot, *alone),
    )
    yield Case(function, "Remora", "kernel(...)", 1, 1, "float64", kernel, alone, error)
    out = tuple(np.empty((n, *s.shape)) for s in kernel.outputs)

    def batch(*arrays: np.ndarray) -> Any:
        return kernel(*arrays, out=out)

    many = (states.q, states.v, states.x)
    yield Case(function, "Remora", "kernel(batch)", n, 1, "float64", batch, many, error)


def pinocchio_cases(
    peer: Pinocchio, robot: rm.Robot, function: str, states: States
) -> Iterator[Case]:
    """Yield one call, the Python loop, and the call for a robot with one joint (overhead)."""
    underived, _, name = TIMED[function]
    run = getattr(peer.pin, name)
    there = converted(peer.layout, underived, states)
    alone = (peer.model, peer.data, *(np.ascontiguousarray(a[0]) for a in there))
    wanted = getattr(rm if hasattr(rm, function) else rm.dynamics, function)(
        robot, states.q[0], states.v[0], states.x[0]
    )
    error = deviation(in_our_layout(peer, function, states.q[0], run(*alone)), wanted)
    call = f"pin.{name}"
    yield Case(function, "Pinocchio", call, 1, 1, "float64", run, alone, error)
    rows = list(zip(*there, strict=True))

    def loop(model: Any, data: Any) -> None:
        for row in rows:
            run(model, data, *row)

    shared = (peer.model, peer.data)
    yield Case(function, "Pinocchio", "loop", len(rows), 1, "float64", loop, shared, error)
    small = peer.pin.Model()
    small.addJoint(0, peer.pin.JointModelRZ(), peer.pin.SE3.Identity(), "joint")
    small.appendBodyToJoint(1, peer.pin.Inertia.Random(), peer.pin.SE3.Identity())
    arguments = (small, small.createData(), np.zeros(1), np.zeros(1), np.zeros(1))
    yield Case(function, "Pinocchio", "empty call", 1, 1, "float64", run, arguments, error)


def in_our_layout(peer: Pinocchio, function: str, q: np.ndarray, matrices: Any) -> list[Any]:
    """Convert Pinocchio's matrices to our layout: its velocity is T v, its tangent T dq."""
    T = np.stack([peer.layout.v_to(q, e) for e in np.eye(peer.robot.nv)], axis=-1)
    dq, dv, last = matrices
    if function == "inverse_dynamics_derivatives":
        return [T.T @ dq @ T, T.T @ dv @ T, T.T @ last @ T]
    back = np.linalg.inv(T)
    return [back @ dq @ T, back @ dv @ T, back @ last @ back.T]


def deviation(actual: Any, wanted: Any) -> float:
    """Return the largest difference of three matrices, each relative to its largest entry."""
    return max(
        float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(actual, wanted, strict=True)
    )


# Operation counts --------------------------------------------------------------------------------


def operations(robot: rm.Robot, function: str) -> dict[str, int]:
    """Return the operation counts of Remora's derivatives and of CasADi's differentiation."""
    underived, last, _ = TIMED[function]
    derivatives, equations = (
        getattr(rm if hasattr(rm, function) else rm.dynamics, function),
        getattr(rm if hasattr(rm, underived) else rm.dynamics, underived),
    )
    inputs = [
        Signature("q", (robot.nq,)),
        Signature("v", (robot.nv,)),
        Signature(last, (robot.nv,)),
    ]

    def by_casadi(q: np.ndarray, v: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
        D = casadi.SX.sym("dq", robot.nv)
        moved = rm.integrate(robot, q, asarray(D).reshape(-1))
        y = casadi.vertcat(*equations(robot, moved, v, x).tolist())
        parts = (D, *(casadi.vertcat(*a.tolist()) for a in (v, x)))
        result = [casadi.densify(casadi.jacobian(y, part)) for part in parts]
        at_zero = casadi.substitute(result, [D], [casadi.SX(np.zeros(robot.nv))])
        return tuple(asarray(casadi.vec(matrix)).reshape(-1) for matrix in at_zero)

    def counted(f: Callable[..., Any]) -> int:
        graph = graph_passes.prepared(trace(f, inputs), "float64")
        return sum(graph.count().values())

    ours = counted(lambda q, v, x: tuple(derivatives(robot, q, v, x)))
    return {"Remora": ours, "CasADi": counted(by_casadi)}


def measured(
    robot: rm.Robot, batch: int, seconds: float, console: Console
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    states = random_states(robot, batch)
    peer = Pinocchio(robot, 1)
    results: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    for function in TIMED:
        with console.status(f"{robot.name}, {function}: compiling and counting"):
            first, again = kernel_timing.compile_times(robot, function, repeats=1)
            facts[function] = {
                "operations": operations(robot, function),
                "first_s": round(first, 2),
                "cached_ms": round(1e3 * again, 1),
            }
            cases = [*remora_cases(robot, function, states)]
            cases += pinocchio_cases(peer, robot, function, states)
        for case in cases:
            if case.deviation > 1e-9:
                raise SystemExit(f"{case.library} {case.call} is off by {case.deviation:.1e}")
        with console.status(f"{robot.name}, {function}: measuring"):
            results += [as_dictionary(r) for r in kernel_timing.measure(cases, seconds)]
    return results, facts


def as_dictionary(result: kernel_timing.Result) -> dict[str, Any]:
    case = result.case
    return {name: getattr(case, name) for name in ("function", "library", "call", "states")} | {
        "microseconds": float(f"{1e6 * result.seconds:.4g}"),
        "deviation": float(f"{case.deviation:.1e}"),
    }


def print_results(name: str, data: dict[str, Any], console: Console) -> None:
    table = Table(title=f"\n{name}, µs per state", title_justify="left", box=None)
    for column in ("function", "library", "call", "states", "µs"):
        table.add_column(column, justify="right" if column in ("states", "µs") else "left")
    for r in data["results"]:
        cells = (r["function"], r["library"], r["call"], str(r["states"]))
        table.add_row(*cells, f"{r['microseconds']:.3f}")
    console.print(table)
    for function, facts in data["facts"].items():
        count = facts["operations"]
        console.print(
            f"{function}: {count['Remora']:,} operations (CasADi's: {count['CasADi']:,}), "
            f"compiled in {facts['first_s']} s, from the cache in {facts['cached_ms']} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batch", type=int, default=4096, help="states in a batch")
    parser.add_argument("--seconds", type=float, default=6.0, help="for each robot and function")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    console = Console(width=110, highlight=False)
    about = kernel_timing.machine()
    console.print(kernel_timing.described(about))
    data: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": about,
        "batch": options.batch,
        "seconds_per_function": options.seconds,
        "notes": list(NOTES),
        "robots": {},
    }
    for name, robot in robots().items():
        results, facts = measured(robot, options.batch, options.seconds, console)
        data["robots"][name] = {"nv": robot.nv, "facts": facts, "results": results}
        print_results(name, data["robots"][name], console)
    for note in NOTES:
        console.print(f"- {note}")
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
