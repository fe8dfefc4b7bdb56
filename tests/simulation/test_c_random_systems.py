"""Random systems in C: phases, events, resets, noise, delays and clocks, as in a batch of one."""

import numpy as np
import pytest

import fuzz
import needs
import remora as rm
from c_structs import CModule
from remora.simulation.export.c_loop import save_loop_c

STEP = 0.02
#: Seeds of `fuzz.random_case` without parts that C does not have: sampled loads of several phases,
#: components that read phases or events.
SEEDS = (6, 9, 17, 20)


def end_in_c(case, folder):
    """Return the state at the end of a run in C."""
    save_loop_c(case.system, folder, STEP, "run", noise="generated", phases=case.phases)
    c = CModule(folder, "run")
    if "parameters" in c.functions["step"]:
        own = case.system.parameters
        c.set("parameters", **{k.replace(".", "_"): x for k, x in own.items()})
    c.call("init", case.q, case.v)
    if hasattr(c.state, "seed"):
        c.set("state", seed=[float(case.seed), 0.0], run=2.0)
    for _ in range(round(sum(p.duration for p in case.phases) / STEP) + 2):
        c.call("step")
    return c


def differences(seed, folder):
    """Return the case of a seed, and what C and the batch do not have in common."""
    case, found = fuzz.random_case(seed), []
    c = end_in_c(case, folder)
    times = np.arange(0.0, sum(p.duration for p in case.phases), STEP)
    batch = rm.simulate_batch(
        case.system,
        case.q,
        case.v,
        case.phases,
        integrator=rm.Integrator(step=STEP),
        record=rm.Record(times, max_events=2000, progress=False),
        runs=rm.Runs(1, seed=case.seed, index=2),
    )

    def compare(what, one, other):
        if not np.abs(np.asarray(one) - other).max() < 1e-9 * (1.0 + np.abs(other).max()):
            found.append(f"{what}: {one} and {other}")

    compare("end", c.get("state", "t")[0], batch.end[0])
    compare("q", c.get("state", "q"), batch.final.q[0])
    compare("v", c.get("state", "v"), batch.final.v[0])
    members = [name for name, _ in c.state._fields_]
    for name in batch.events.names if batch.events is not None else ():
        own = name.replace(".", "_").replace(" ", "_") + "_time"
        mine = [c.get("state", m)[0] for m in members if m.startswith(own)]
        theirs = batch.events.of(name)[0]
        theirs = theirs[np.isfinite(theirs)]
        compare(f"first {name}", min(mine), theirs[0] if theirs.size else 1e300)
    return case, found


@needs.compiler
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_system_in_c_is_that_of_a_batch(seed, tmp_path):
    _, found = differences(seed, tmp_path)
    assert not found
