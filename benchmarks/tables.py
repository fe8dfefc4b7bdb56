"""Write the tables of docs/benchmarks.md from the results in benchmarks/results.

    python benchmarks/tables.py

The script replaces the text between `<!-- table: NAME -->` and `<!-- end -->`, so that the page's
numbers match the result files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from remora.cli.bench_gpu import TIMED as GPU_TIMED
from remora.cli.kernel_timing import TIMED, described

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
SERVICER = "servicer, 7 joints"
MARKED = re.compile(r"(<!-- table: (.*?) -->\n).*?(<!-- end -->)", re.S)


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(*header: str) -> list[str]:
    return [row(*header), row(*("---" if k == 0 else "---:" for k in range(len(header))))]


def found(
    results: list[dict[str, Any]], function: str, library: str, states: int, threads: int,
    dtype: str = "float64",
) -> float | None:  # fmt: skip
    wanted = (function, library, states, threads, dtype)
    for r in results:
        if wanted == tuple(r[k] for k in ("function", "library", "states", "threads", "dtype")):
            return r["microseconds"]
    return None


def ways(data: dict[str, Any]) -> list[tuple[str, int, int, str]]:
    n = data["batch"]
    return [
        ("one call", 1, 1, "float64"),
        ("batch, 1 thread", n, 1, "float64"),
        ("batch, 2 threads", n, 2, "float64"),
        ("batch, 1 thread, float32", n, 1, "float32"),
    ]


def robot_table(data: dict[str, Any], name: str) -> Iterator[str]:
    """Yield microseconds and ratios for one robot; `*`: the peer's call for one state."""
    results = data["robots"][name]["results"]
    libraries = list(dict.fromkeys(r["library"] for r in results if r["library"] != "Remora"))
    yield from table("µs per evaluation", "Remora", *libraries)
    for function, label in TIMED.items():
        for way, states, threads, dtype in ways(data):
            ours = found(results, function, "Remora", states, threads, dtype)
            if ours is None:
                continue
            cells = []
            for library in libraries if dtype == "float64" else ():  # the peers are 64-bit
                star, peer = "", found(results, function, library, states, threads)
                if peer is None and found(results, function, library, data["batch"], 1) is None:
                    star, peer = "*", found(results, function, library, 1, 1)
                cells.append("-" if peer is None else f"{peer:.2f}{star} ({peer / ours:.1f}x)")
            cells += [""] * (len(libraries) - len(cells))
            yield row(f"{label}, {way}", f"{ours:.3f}", *cells)


def operations_table(data: dict[str, Any]) -> Iterator[str]:
    yield from table("operations in the graph", *TIMED.values())
    for name, robot in data["robots"].items():
        counts = [sum(robot["operations"][function].values()) for function in TIMED]
        yield row(name, *(f"{n:,}" for n in counts))


def goals_table(
    data: dict[str, Any],
    times: dict[str, Any],
    large: dict[str, Any],
    derived: dict[str, Any],
    gpu: dict[str, Any],
) -> Iterator[str]:
    """Yield the performance goals and the measured values."""
    results = data["robots"]["servicer, 7 joints"]["results"]
    n = data["batch"]

    def ratio(function: str, states: int, theirs: int) -> float:
        ours = found(results, function, "Remora", states, 1)
        peer = found(results, function, "Pinocchio", theirs, 1)
        assert ours is not None
        assert peer is not None
        return peer / ours

    compile_row = next(r for r in times["compile"] if r["function"] == "forward_dynamics")
    yield from table("13 degrees of freedom, float64", "to reach", "measured")
    one = ratio("forward_dynamics", 1, 1)
    yield row("one forward-dynamics call, against `pin.aba`", "3x", f"{one:.1f}x")
    batch = ratio("forward_dynamics", n, n)
    yield row(f"batch of {n}, against `abaInParallel`, one thread", "18x", f"{batch:.1f}x")
    inverse = ratio("inverse_dynamics", n, n)
    yield row("inverse dynamics, against `rneaInParallel`", "12x", f"{inverse:.1f}x")
    matrix = ratio("mass_matrix", n, 1)
    yield row("mass matrix, against the call `pin.crba`", "12x", f"{matrix:.1f}x")
    yield row("first compile", "0.6 s", f"{compile_row['first_s']:.2f} s")
    yield row("from the cache", "30 ms", f"{compile_row['cached_ms']:.1f} ms")
    yield row("cost per body, 7 to 56 joints, most over least", "1.2", f"{times['spread']:.2f}")
    growth = large["spread"]["forward_dynamics, chain"]
    yield row("cost per body, 7 to 1,000 joints, most over least", "1.5", f"{growth:.2f}")
    last = [r for r in large["rows"] if r["joints"] == 1000 and r["function"] == "forward_dynamics"]
    slowest = max(r["first_s"] for r in last)
    yield row("first compile, 1,000 joints", "10 s", f"{slowest:.2f} s")
    for way, goal in ((derived["batch"], "5x"), (1, "2x")):
        of = {
            r["library"]: r["microseconds"]
            for r in derived["robots"][SERVICER]["results"]
            if r["function"] == "forward_dynamics_derivatives"
            and (r["states"], r["call"] == "empty call") == (way, False)
        }
        what = f"batch of {way}, one thread" if way > 1 else "one call"
        ratio_here = of["Pinocchio"] / of["Remora"]
        label = f"forward dynamics' derivatives, {what}, against `pin.computeABADerivatives`"
        yield row(label, goal, f"{ratio_here:.1f}x")
    rates = {
        (r["function"], r["dtype"], r["layout"]): r["per_second"] for r in gpu["robots"][SERVICER]
    }
    for function, dtype, goal in (
        ("forward_dynamics", "float64", "5e9"), ("forward_dynamics", "float32", "1e10"),
        ("forward_dynamics_derivatives", "float32", "5e8"),
        ("forward_dynamics_derivatives", "float64", "5e8"),
    ):  # fmt: skip
        best = max(rates[function, dtype, layout] for layout in ("rows", "columns"))
        label = "forward dynamics" + ("' derivatives" if "deriv" in function else "")
        yield row(f"H200, {label}, {dtype}, per second", goal, f"{best:.2e}")


def compile_table(times: dict[str, Any]) -> Iterator[str]:
    yield from table("servicer", "first, s", "from the cache, ms")
    for r in times["compile"]:
        yield row(TIMED[r["function"]], f"{r['first_s']:.2f}", f"{r['cached_ms']:.1f}")


def growth_table(times: dict[str, Any]) -> Iterator[str]:
    yield from table(
        "joints", "operations", "per body", "µs per state", "ns per body", "`abaInParallel`, µs",
        "ratio", "first compile, s", "from the cache, ms",
    )  # fmt: skip
    for r in times["growth"]:
        peer = r.get("Pinocchio_us")
        yield row(
            r["joints"], f"{r['operations']:,}", f"{r['operations_per_body']:.0f}",
            f"{r['Remora_us']:.3f}", f"{r['ns_per_body']:.1f}",
            "-" if peer is None else f"{peer:.2f}",
            "-" if peer is None else f"{peer / r['Remora_us']:.1f}x",
            f"{r['first_s']:.2f}", f"{r['cached_ms']:.1f}",
        )  # fmt: skip


def large_table(data: dict[str, Any], kind: str) -> Iterator[str]:
    """Yield cost per body (per entry for the mass matrix) and ratios for one robot type."""
    names = ("forward_dynamics", "inverse_dynamics", "poses", "mass_matrix")
    yield from table(
        f"{kind}: joints", "forward dynamics, ns (`pin.aba`)", "inverse dynamics, ns (`pin.rnea`)",
        "poses, ns (`pin.forwardKinematics`)", "mass matrix, ns (`pin.crba`)",
        "first compile, s", "from the cache, ms",
    )  # fmt: skip
    for joints in dict.fromkeys(r["joints"] for r in data["rows"]):
        own = {
            r["function"]: r for r in data["rows"] if (r["robot"], r["joints"]) == (kind, joints)
        }
        cells: list[str] = []
        for name in names:
            ours, peer = own[name], own[name]["Pinocchio_us"]
            ratio = "" if peer is None else f" ({peer / ours['us']:.1f}x)"
            cells.append(f"{ours['ns']:.2f}{ratio}")
        first, cached = ([own[n][key] for n in names] for key in ("first_s", "cached_ms"))
        yield row(
            joints, *cells, f"{min(first):.2f} to {max(first):.2f}",
            f"{min(cached):.0f} to {max(cached):.0f}",
        )  # fmt: skip


def derivatives_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield microseconds of the derivatives, and ratios with and without call overhead."""
    n = data["batch"]
    yield from table("µs per state", "Remora", "Pinocchio", "its call taken off")
    for robot, found in data["robots"].items():
        for function in found["facts"]:
            times = {
                (r["library"], r["call"] == "empty call", r["states"]): r["microseconds"]
                for r in found["results"]
                if r["function"] == function
            }
            empty = times["Pinocchio", True, 1]
            for way, states in (("one call", 1), (f"batch of {n}", n)):
                ours, peer = times["Remora", False, states], times["Pinocchio", False, states]
                rest = peer - empty
                yield row(
                    f"{robot.partition(',')[0]}: {function.partition('_')[0]}, {way}",
                    f"{ours:.3f}", f"{peer:.2f} ({peer / ours:.1f}x)",
                    f"{rest:.2f} ({rest / ours:.1f}x)",
                )  # fmt: skip


def derivatives_operations_table(data: dict[str, Any]) -> Iterator[str]:
    yield from table(
        "derivatives", "operations", "of CasADi's", "first compile, s", "from the cache, ms"
    )
    for robot, found in data["robots"].items():
        for function, facts in found["facts"].items():
            count = facts["operations"]
            yield row(
                f"{robot.partition(',')[0]}: {function.partition('_')[0]}",
                f"{count['Remora']:,}", f"{count['CasADi']:,}",
                f"{facts['first_s']:.2f}", f"{facts['cached_ms']:.1f}",
            )  # fmt: skip


def gpu_rates_table(data: dict[str, Any], name: str) -> Iterator[str]:
    """Yield evaluations per second of one robot in both precisions."""
    both = len({r["layout"] for r in data["robots"][name]}) > 1
    yield from table(
        f"{name}, per second", "float64", "float32", "TB/s", "registers", "spilled, B",
        "launches", "off by",
    )  # fmt: skip
    by = {(r["function"], r["layout"], r["dtype"]): r for r in data["robots"][name]}
    for function, layout in dict.fromkeys((f, lay) for f, lay, _ in by):
        pair = [by.get((function, layout, dtype)) for dtype in ("float64", "float32")]

        def cells(form: Callable[[dict[str, Any]], str], pair: Any = pair) -> str:
            return ", ".join("-" if r is None else form(r) for r in pair)

        label = GPU_TIMED[function] + (f", in {layout}" if both else "")
        yield row(
            label, *("-" if r is None else f"{r['per_second']:.2e}" for r in pair),
            cells(lambda r: f"{r['per_second'] * r['bytes'] / 1e12:.2f}"),
            cells(lambda r: str(r["registers"])), cells(lambda r: str(r["local_bytes"])),
            cells(lambda r: str(r["entries"])), cells(lambda r: f"{r['deviation']:.0e}"),
        )  # fmt: skip


def gpu_peers_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield the peers' evaluations per second, and Remora's speedup."""
    libraries = list(dict.fromkeys(r["library"] for r in data["peers"]))
    yield from table("servicer, per second", "Remora", *libraries)
    servicer = next(iter(data["robots"].values()))
    for function in dict.fromkeys(r["function"] for r in data["peers"]):
        for dtype in ("float64", "float32"):
            ours = max(
                r["per_second"] for r in servicer
                if (r["function"], r["dtype"]) == (function, dtype)
            )  # fmt: skip
            cells: list[str] = []
            for library in libraries:
                theirs = [
                    r["per_second"] for r in data["peers"]
                    if (r["function"], r["dtype"], r["library"]) == (function, dtype, library)
                ]  # fmt: skip
                cells.append(f"{theirs[0]:.2e} ({ours / theirs[0]:.0f}x)" if theirs else "-")
            yield row(f"{GPU_TIMED[function]}, {dtype}", f"{ours:.2e}", *cells)


def threads_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield microseconds of batches on one and on two threads."""
    yield from table("forward dynamics", "states", "one thread, µs", "two threads, µs", "ratio")
    for name, rows in data["robots"].items():
        for r in rows:
            cells = f"{r['one_us']:,.0f}", f"{r['two_us']:,.0f}", f"{r['ratio']:.2f}x"
            yield row(name, f"{r['states']:,}", *cells)


def one_run_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield the results of one accurate run by each integrator."""
    yield from table(
        "70 s of VT18, section 4", "steps", "s", "times real time", "against dop853",
        "drift of linear, angular momentum, N s, N m s", "off by",
    )  # fmt: skip
    first = data["one"][0]["seconds"]
    for r in data["one"]:
        longer = r["seconds"] / first
        yield row(
            f"{r['library']}: {r['call']}", f"{r['steps']:,}", f"{r['seconds']:.3f}",
            f"{r['real_time']:,.0f}", f"{longer:.{2 if longer < 10 else 0}f}x",
            f"{r['linear']:.0e}, {r['angular']:.0e}", f"{r['off']:.0e}" if r["off"] else "-",
        )  # fmt: skip


def batch_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield microseconds per step of many runs, and MuJoCo's on the same number of threads."""
    runs, duration = data["batch"]["runs"], data["batch"]["duration"]
    yield from table(
        f"{runs:,} runs of {duration:g} s", "s", "steps per second", "µs per step",
        "MuJoCo, µs per step",
    )  # fmt: skip
    rows = data["batch"]["rows"]
    theirs = {r["threads"]: r["us_per_step"] for r in rows if r["library"] == "MuJoCo"}
    for r in (r for r in rows if r["library"] == "Remora"):
        peer, ours, count = theirs.get(r["threads"]), r["us_per_step"], r["threads"]
        yield row(
            f"{r['dtype']}, {count} thread{'s' * (count > 1)}", f"{r['seconds']:.1f}",
            f"{r['steps_per_second']:.2e}", f"{ours:.3f}",
            "-" if peer is None else f"{peer:.2f} ({peer / ours:.1f}x)",
        )  # fmt: skip


def few_runs_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield the same for few runs, with MuJoCo's total time from its time per step."""
    yield from table("runs, one thread", "Remora, s", "MuJoCo, s", "ratio")
    rows = data["batch"]["small"]
    for k, r in enumerate(rows):
        peer = rows[k + 1] if k + 1 < len(rows) else None
        if r["library"] != "Remora" or peer is None or peer["library"] == "Remora":
            continue
        theirs = 1e-6 * peer["us_per_step"] * r["steps"]
        ratio = theirs / r["seconds"]
        yield row(r["runs"], f"{r['seconds']:.3f}", f"{theirs:.3f}", f"{ratio:.2g}x")


def gpu_batch_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield steps per second of many runs on a GPU, and the speedup over the peers."""
    if "gpu" not in data:
        yield "(Not measured yet.)"
        return
    gpu = data["gpu"]
    peers = [r for r in gpu["rows"] if r["library"] != "Remora"]

    def shown(r: dict[str, Any]) -> str:
        where = f"{r['threads']} thread{'s' * (r['threads'] > 1)}" if r["threads"] else r["dtype"]
        return f"{r['library']}, {where}"

    names = list(dict.fromkeys(shown(r) for r in peers))
    yield from table(
        f"{gpu['duration']:g} s a run, steps per second", "s", "Remora", *names
    )  # fmt: skip
    for r in (r for r in gpu["rows"] if r["library"] == "Remora"):
        cells: list[str] = []
        for name in names:
            own = [p for p in peers if shown(p) == name]
            same = [p for p in own if p["threads"] or p["runs"] == r["runs"]]
            rate = same[0]["steps_per_second"] if same else None
            ratio = 0.0 if rate is None else r["steps_per_second"] / rate
            cells.append("-" if rate is None else f"{rate:.2e} ({ratio:.3g}x)")
        label = f"{r['runs']:,} runs, {r['dtype']}, {r['call'].rpartition(', ')[2]}"
        yield row(label, f"{r['seconds']:.3f}", f"{r['steps_per_second']:.2e}", *cells)


def closed_loop_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield the time per step of open and closed loops."""
    yield from table(
        "RK4 steps of 10 ms", "open loop, ns", "closed loop, ns", "ratio", "closed steps per s"
    )  # fmt: skip
    for r in data["loops"]:
        where = "H200" if r["target"] == "cuda" else "one core"
        yield row(
            f"{r['runs']:,} runs, {where}, {r['dtype']}", f"{r['open ns per step']:.3g}",
            f"{r['closed ns per step']:.3g}", f"{r['closed / open']:.2f}",
            f"{r['closed steps per s']:.2e}",
        )  # fmt: skip


def constraints_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield the cost of closed chains beside the same tree without the loops."""
    yield from table(
        "forward dynamics, µs per state", "equations", "tree, batch", "closed, batch", "ratio",
        "closed, one call", "ratio", "Pinocchio", "MuJoCo",
    )  # fmt: skip
    for r in data["rows"]:
        batch, call = r["batch us"], r["call us"]
        yield row(
            f"{r['robot']}, nv = {r['freedoms']}", r["equations"], f"{batch['tree']:.3f}",
            f"{batch['closed']:.3f}", f"{batch['closed'] / batch['tree']:.2f}",
            f"{call['closed']:.2f}", f"{call['closed'] / call['tree']:.2f}",
            *(f"{call[peer]:.1f}" if peer in call else "-" for peer in ("Pinocchio", "MuJoCo")),
        )  # fmt: skip


def adaptive_table(data: dict[str, Any]) -> Iterator[str]:
    """Yield the time of adaptive runs in a batch and one at a time."""
    r = data["adaptive"]
    yield from table("dopri5, rtol 1e-9, 20 s, one core", "ms per run", "error")
    yield row("one at a time", f"{r['single ms per run']:.3g}", f"{r['single error']:.1e}")
    yield row(
        f"batch of {r['runs']:,} ({r['single / batch']:.0f}x faster)",
        f"{r['batch ms per run']:.3g}", f"{r['batch error']:.1e}",
    )  # fmt: skip


def gpu_batch_machine(data: dict[str, Any]) -> str:
    if "gpu" not in data:
        return ""
    about = data["gpu"]["machine"]
    return f"{about['gpu']}; {described(about)}."


def page(text: str) -> str:
    """Return the page with regenerated tables."""
    gpu = json.loads((RESULTS / "gpu.json").read_text(encoding="utf-8"))
    data = json.loads((RESULTS / "dynamics.json").read_text(encoding="utf-8"))
    times = json.loads((RESULTS / "compile_time.json").read_text(encoding="utf-8"))
    large = json.loads((RESULTS / "large.json").read_text(encoding="utf-8"))
    derived = json.loads((RESULTS / "derivatives.json").read_text(encoding="utf-8"))
    simulated = json.loads((RESULTS / "simulate.json").read_text(encoding="utf-8"))
    threads = json.loads((RESULTS / "threads.json").read_text(encoding="utf-8"))
    loops = json.loads((RESULTS / "closed_loop.json").read_text(encoding="utf-8"))
    closed = json.loads((RESULTS / "constraints.json").read_text(encoding="utf-8"))
    tables = {
        "machine": lambda: [described(data["machine"]) + "."],
        "goals": lambda: goals_table(data, times, large, derived, gpu),
        "gpu machine": lambda: [
            f"{gpu['machine']['gpu']}, copies at {gpu['copy_bytes_per_second'] / 1e12:.2f} TB/s; "
            + ", ".join(f"{k} {v}" for k, v in gpu["machine"]["versions"].items())
            + "."
        ],
        "gpu peers": lambda: gpu_peers_table(gpu),
        "threads": lambda: threads_table(threads),
        "operations": lambda: operations_table(data),
        "compile": lambda: compile_table(times),
        "growth": lambda: growth_table(times),
        "chains": lambda: large_table(large, "chain"),
        "trees": lambda: large_table(large, "tree"),
        "derivatives": lambda: derivatives_table(derived),
        "derivatives operations": lambda: derivatives_operations_table(derived),
        "derivatives notes": lambda: [f"- {note}." for note in derived["notes"]],
        "simulation: one run": lambda: one_run_table(simulated),
        "simulation: batch": lambda: batch_table(simulated),
        "simulation: few runs": lambda: few_runs_table(simulated),
        "simulation: gpu": lambda: gpu_batch_table(simulated),
        "simulation: gpu machine": lambda: [gpu_batch_machine(simulated)],
        "closed loops": lambda: closed_loop_table(loops),
        "constraints": lambda: constraints_table(closed),
        "adaptive batches": lambda: adaptive_table(loops),
        "simulation: notes": lambda: [
            f"- {note}." for note in simulated["notes"] + simulated.get("gpu", {}).get("notes", [])
        ],
        "notes": lambda: [f"- {note}." for note in data["notes"]],
    }

    def made(match: re.Match[str]) -> str:
        name = match[2]
        on_gpu = name.removeprefix("gpu: ")
        if name in tables:
            lines = tables[name]()
        elif on_gpu != name:
            lines = gpu_rates_table(gpu, on_gpu)
        else:
            lines = robot_table(data, name)
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return MARKED.sub(made, text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
