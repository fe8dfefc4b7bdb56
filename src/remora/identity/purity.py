"""Which functions and classes of libraries are pure: the same for the same arguments, always.

Listed is what is; the rest of Python's own modules may read a file, a clock or the environment.
"""

from __future__ import annotations

#: Functions of Python itself that read what is not among their arguments.
IMPURE_BUILTINS = frozenset(("breakpoint", "input", "locals", "open"))
#: Packages and modules of Python of which everything else is pure.
_PURE = frozenset((
    "_abc", "_collections_abc", "_functools", "_operator", "abc", "bisect", "builtins", "casadi",
    "cmath", "collections", "contextlib", "copy", "copyreg", "dataclasses", "decimal", "enum",
    "fractions", "functools", "itertools", "math", "numbers", "numpy", "operator", "re", "remora",
    "reprlib", "scipy", "statistics", "string", "types", "typing", "typing_extensions", "warnings",
))  # fmt: skip
#: Those that also hold functions that are not, and modules in them that hold none.
_MIXED = ("builtins", "casadi", "numpy", "remora", "scipy")
_PURE_MODULES = ("numpy.fft", "numpy.linalg", "numpy.polynomial", "scipy.interpolate",
                 "scipy.linalg", "scipy.special")  # fmt: skip
#: Modules in them that are not pure.
_IMPURE_MODULES = (
    "casadi.tools", "numpy.ctypeslib", "numpy.f2py", "numpy.lib.npyio", "numpy.random",
    "numpy.testing", "remora.campaigns", "remora.cli", "remora.model.formats",
    "remora.simulation.storage", "remora.viewer", "scipy.datasets", "scipy.io",
)  # fmt: skip
#: Functions in them that are not pure.
_IMPURE = frozenset((
    "empty", "empty_like", "fromfile", "fromregex", "genfromtxt", "get_printoptions", "geterr",
    "getbufsize", "load", "loadtxt", "memmap", "random_robot", "random_state",
))  # fmt: skip


def is_pure(module: str, name: str | None) -> bool:
    """Tell whether a function or class of a library is pure; without a name, all of a module.

    Args:
        module: full name of the module.
        name: qualified name in it.
    """
    root = module.partition(".")[0]
    if root not in _PURE or any(f"{module}.".startswith(f"{m}.") for m in _IMPURE_MODULES):
        return False
    if name is None:
        return root not in _MIXED or module in _PURE_MODULES or module.startswith("remora.")
    last = name.rpartition(".")[2]
    return last not in (IMPURE_BUILTINS if root == "builtins" else _IMPURE)


def is_pure_package(root: str) -> bool:
    """Tell whether a package is one of which nearly everything is pure."""
    return root in _PURE
