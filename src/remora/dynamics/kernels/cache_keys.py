"""Cache keys of kernels: one digest by value, so that equal keys mean equal results.

The key covers everything the machine code depends on: the function, the names and shapes of its
arguments, the values compiled in, the robot's fields that equations read, the rows of tables that
users may replace, and the library's own source, as far as the function reaches it. A value that
cannot be compared has no key, nor has a function that reads what may change, such as a file.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remora.codegen.ir.graph import Signature
from remora.dynamics.formulations import FORMULATIONS
from remora.dynamics.kernels.tree_recursions import RECURSIONS
from remora.identity.digest import code_key, digest_or_none
from remora.identity.table import Table
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Robot

#: Packages whose functions are equations: they depend only on their arguments and on tables.
_EQUATIONS = ("algebra", "model", "dynamics", "planning", "analysis")


def kernel_key(
    function: Callable[..., Any],
    robot: Robot,
    inputs: Sequence[Signature],
    fixed: Mapping[str, Any],
    parameters: Sequence[str] = (),
) -> str | None:
    """Return the key of a kernel, or None if it must be identified by its traced graph.

    Args:
        function: the function to compile.
        robot: the robot whose numbers are compiled in.
        inputs: names and shapes of the arguments.
        fixed: values compiled in.
        parameters: numbers of the robot that are left open.
    """
    if not is_equation(function):
        return None
    names = [(s.name, s.shape) for s in inputs]
    return value_key(function, robot, names, sorted(fixed.items()), tuple(parameters))


def value_key(function: Callable[..., Any], robot: Robot, *others: Any) -> str | None:
    """Return the key of a function, a robot and other values, or None if there is none."""
    seen, tables = robot.seen_identity, tables_digest()
    if seen is None or tables is None:
        return None
    return code_key("kernel", function, seen, tables, *others)


def is_equation(function: Callable[..., Any]) -> bool:
    """Tell whether a function is one of the library's equations, found by its name."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    parts = (module or "").split(".")
    if module not in sys.modules or parts[0] != "remora" or len(parts) < 2:
        return False
    return parts[1] in _EQUATIONS and getattr(sys.modules[module], name, None) is function


def tables_digest() -> str | None:
    """Return the digest of all rows that equations look up; None where one has no identity.

    A user's row is digested each time: a global or an attribute that its functions read may have
    changed since, without any change of a table.
    """
    if FORMULATIONS.replaced() or JOINT_TYPES.replaced():
        return _digest_of_rows()
    return _own_digest(Table.changes)


@functools.lru_cache(maxsize=1)
def _own_digest(changes: int) -> str | None:
    """Return the digest of tables without a user's row: the library's source says what they hold.

    It is a part of every key, see `code_key`; a deleted row changes the names.
    """
    return digest_or_none("own rows", sorted(FORMULATIONS), sorted(JOINT_TYPES), RECURSIONS)


def _digest_of_rows() -> str | None:
    return code_key(dict(FORMULATIONS), dict(JOINT_TYPES), RECURSIONS)
