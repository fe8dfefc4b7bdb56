"""Arguments of `rm.simulate` from settings by plain names, so that tests can vary one of them."""

import dataclasses

import remora as rm
from remora.simulation.inputs.run_settings import GROUPS

#: The plain value that an argument may have: a field of its group.
FIRST = {"integrator": "method", "record": "sample", "runs": "count", "target": "processor"}
#: Names of fields that are other than in the tests.
NAMES = {"out": "folder", "run": "index", "phases": "duration"}
LOADS = ("torque", "base_wrench", "wrenches", "prescribed", "locked")


def grouped(batch=False, /, **plain):
    """Return arguments of `rm.simulate`, or of `rm.simulate_batch`.

    `grouped(rtol=1e-12, sample=0.1)` is `{"integrator": rm.Integrator(rtol=1e-12),
    "record": rm.Record(sample=0.1)}`. A phase has a wrench on the base, which runs do not take.
    """
    found = {NAMES.get(name, name): value for name, value in plain.items()}
    if not batch and "index" in found:
        found["seed"] = found.get("seed", 0), found.pop("index")
    if "base_wrench" in found:
        loads = {name: found.pop(name) for name in LOADS if name in found}
        found["duration"] = rm.Phase(found["duration"], **loads)
    for kind, argument in GROUPS.items():
        if kind in (rm.Runs, rm.Target) and not batch:
            continue
        names = [f.name for f in dataclasses.fields(kind) if f.name in found]
        if not names:
            continue
        own = found.get(argument)
        if own is not None and not isinstance(own, kind):
            own = kind(**{FIRST[argument]: own})
        numbers = {name: found.pop(name) for name in names}
        found[argument] = dataclasses.replace(own or kind(), **numbers)
    return found
