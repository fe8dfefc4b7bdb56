"""Names of MuJoCo's bodies and joints, generated where the file has none.

The reader and the layouts generate the same names for a model, so that states can be converted for
models with unnamed parts, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

FREE = 0  # MuJoCo's number of the type


def body_names(model: Any) -> list[str | None]:
    """Return the name of each body, in MuJoCo's order; None for the world."""
    given = [str(model.body(i).name) for i in range(int(model.nbody))]
    taken = {name for name in given[1:] if name}
    names: list[str | None] = [None]
    for i, name in enumerate(given[1:], 1):
        names.append(name or unused(f"body_{i}", "body", taken))
    return names


def joint_names(model: Any) -> list[str]:
    """Return the name of each joint, in MuJoCo's order."""
    given = [str(model.joint(j).name) for j in range(int(model.njnt))]
    bodies, taken = body_names(model), {name for name in given if name}
    names: list[str] = []
    for j, name in enumerate(given):
        body = int(model.jnt_bodyid[j])
        nth = j - int(model.body_jntadr[body])
        made = f"{bodies[body]}_joint" + (f"_{nth}" if nth else "")
        names.append(name or unused(made, "joint", taken))
    return names


def joint_addresses(model: Any) -> dict[str, tuple[int, int]]:
    """Return the first coordinate and speed index of each joint, by the reader's names.

    Joints merged into one have joined names; a free joint split into two has two entries.
    """
    names = joint_names(model)
    found: dict[str, tuple[int, int]] = {}
    for i in range(int(model.nbody)):
        first, count = int(model.body_jntadr[i]), int(model.body_jntnum[i])
        if count > 1:
            at = int(model.jnt_qposadr[first]), int(model.jnt_dofadr[first])
            found[joined(names[first : first + count])] = at
    for j, name in enumerate(names):
        at = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        found[name] = at
        if int(model.jnt_type[j]) == FREE:
            found[f"{name}_translation"] = at
            found[f"{name}_rotation"] = at[0] + 3, at[1] + 3
    return found


def joined(names: Iterable[str]) -> str:
    """Return the name of a joint that replaces several."""
    return "+".join(names)


def unused(name: str, what: str, taken: set[str]) -> str:
    """Return the name, extended until it is unused, and mark it as used."""
    while name in taken:
        name = f"{name}_{what}"
    taken.add(name)
    return name
