"""Digests of code: functions, methods, partial objects, classes and modules.

What a library defines (Python's own, an installed package, Remora) is known by its name and the
digest of its file and package. Whatever else is code of a user and is known by value: byte code,
constants, defaults, closure, attributes, and the globals whose names occur in it. Code that looks
names up by other means (`globals()`, `eval`, `getattr` of a module) has no identity.

For a key of code (`remora.identity.digest.code_key`) that is not enough: `os.environ` and a random
generator are not the same next time. There, what code takes from a library must be pure (see
`remora.identity.purity`), data of a library's modules counts by value, and packages that a user
installed are code of the user.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import importlib.metadata
import importlib.util
import itertools
import os
import site
import sys
import sysconfig
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from remora.identity.hashing import Walker, joined, kind_of, text
from remora.identity.purity import IMPURE_BUILTINS, is_pure, is_pure_package
from remora.identity.sources import digest_of_files

#: The package whose functions are identified by name wherever it is installed.
_OURS = __name__.partition(".")[0]
#: Functions of Python by which code reaches what it does not name: anything, or any attribute.
_BY_TEXT = frozenset(("__import__", "eval", "exec", "globals"))
_BY_ATTRIBUTE = frozenset(("getattr", "vars"))
#: Instructions that read a name from outside of a function, in all versions of Python.
_READS = frozenset((
    "LOAD_CLASSDEREF", "LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS",
    "LOAD_GLOBAL", "LOAD_NAME",
))  # fmt: skip


def _function(walk: Walker, function: types.FunctionType) -> bytes:
    if _is_found(function) and _is_known(walk, function.__module__):
        return _by_name(walk, function)
    names = sorted(_names(function.__code__))
    _refuse_unnamed(walk, function)
    known = function.__globals__  # attributes, as in `event.stop`, are none of them
    seen = [(n, known[n]) for n in sorted(_loaded(function.__code__)) if n in known]
    cells = [_content(walk, cell) for cell in function.__closure__ or ()]
    parts = [
        walk.of(function.__code__, ".__code__"),
        walk.of(function.__defaults__, ".__defaults__"),
        walk.of(function.__kwdefaults__, ".__kwdefaults__"),
        *(
            _named_module(x) if _is_taken_apart(walk, x) else walk.of(x, f".<{n}>")
            for n, x in zip(function.__code__.co_freevars, cells, strict=True)
        ),
        *(d for n, x in seen for d in (walk.of(n), _global(walk, n, x, names))),
        *(
            _imported(walk, function, name, names)
            for name in _found(function.__code__, "IMPORT_NAME")
        ),
        *walk.named(sorted(vars(function).items())),
    ]
    home = str(function.__globals__.get("__name__"))
    if walk.for_code and not (_is_known(walk, home) and is_pure(home, function.__qualname__)):
        parts += _taken(walk, function)
    return joined("function", parts)


def _is_taken_apart(walk: Walker, value: object) -> bool:
    """Tell whether a value is a library's module, of which `_taken` tells what code takes."""
    return walk.for_code and isinstance(value, types.ModuleType) and _is_known(walk, value.__name__)


def _taken(walk: Walker, function: types.FunctionType) -> list[bytes]:
    """Return digests of what a function takes from libraries, or refuse what is not pure."""
    found: list[bytes] = []
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    held = {n: _content(walk, cell) for n, cell in cells}
    for chain in _chains(function.__code__):
        read, known = chain[0], held if chain[0] in held else function.__globals__
        if read not in known:
            if read in IMPURE_BUILTINS:
                raise walk.refuse(function, f"calls {read}")
            continue
        value = known[read]
        for name in chain[1:]:
            if not isinstance(value, types.ModuleType):
                break
            value, read = getattr(value, name, None), f"{read}.{name}"
        if isinstance(value, types.ModuleType):  # passed on: others may read anything of it
            found.append(walk.of(value, f".<{read}>"))
        elif read != chain[0]:
            found += [walk.of(read), walk.of(value, f".<{read}>")]
    return found


@functools.lru_cache(maxsize=4096)
def _chains(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Return the names that code reads, each with the attributes read of it: `np.linalg.norm`."""
    found: list[tuple[str, ...]] = []
    chain: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain.append(str(instruction.argval))
        elif instruction.opname != "EXTENDED_ARG":  # the high bytes of the next one's argument
            found += [tuple(chain)] if chain else []
            chain = [str(instruction.argval)] if instruction.opname in _READS else []
    inner = [_chains(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return tuple(dict.fromkeys([*found, *(c for part in inner for c in part)]))


def _refuse_unnamed(walk: Walker, function: types.FunctionType) -> None:
    """Refuse code that looks up by a text what is known only when it is called."""
    code, known = function.__code__, function.__globals__
    loaded = _loaded(code)
    for name in sorted(loaded & _BY_TEXT):
        if name not in known:
            raise walk.refuse(function, f"looks names up when it is called ({name})")
    for reader in sorted(loaded & _BY_ATTRIBUTE):
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        held = {n: _content(walk, cell) for n, cell in cells}
        held |= {n: known[n] for n in loaded if n in known}
        for name, value in held.items():
            if isinstance(value, types.ModuleType) and not is_library(value.__name__):
                why = f"may look up anything in the module {name} ({reader})"
                raise walk.refuse(function, why)


def _content(walk: Walker, cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise walk.refuse(cell, "is a variable that is not set yet") from None


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> frozenset[str]:
    """Return all names that a code object and the code nested in it look up."""
    inner = [_names(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


@functools.lru_cache(maxsize=4096)
def _loaded(code: types.CodeType) -> frozenset[str]:
    """Return the names of globals that a code object and the code nested in it read."""
    operations = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    return frozenset(name for operation in operations for name in _found(code, operation))


@functools.lru_cache(maxsize=4096)
def _found(code: types.CodeType, operation: str) -> tuple[str, ...]:
    """Return the names that some instructions of code and of the code within it have."""
    found = [
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname == operation
    ]
    inner = [_found(c, operation) for c in code.co_consts if isinstance(c, types.CodeType)]
    return tuple(itertools.chain(found, *inner))


def _global(walk: Walker, name: str, value: Any, names: list[str]) -> bytes:
    """Return the digest of a global; of a user's module, only the parts the code may name."""
    if isinstance(value, types.ModuleType) and not _is_known(walk, value.__name__):
        return _module_parts(walk, value, names, frozenset())
    return _named_module(value) if _is_taken_apart(walk, value) else walk.of(value, f".<{name}>")


def _module_parts(
    walk: Walker, module: types.ModuleType, names: list[str], above: frozenset[str]
) -> bytes:
    parts = [text("module", module.__name__)]
    for name in names:
        if name not in vars(module):
            continue
        value = vars(module)[name]
        inside = isinstance(value, types.ModuleType) and not _is_known(walk, value.__name__)
        if inside and value.__name__ in above:
            continue
        parts.append(walk.of(name))
        parts.append(
            _module_parts(walk, value, names, above | {module.__name__})
            if inside else walk.of(value, f".<{module.__name__}.{name}>")
        )  # fmt: skip
    return joined("module", parts)


def _imported(walk: Walker, function: types.FunctionType, name: str, names: list[str]) -> bytes:
    """Return the digest of a module that a function imports when it is called."""
    if walk.for_code and not is_pure(name, None):
        raise walk.refuse(function, f"imports {name!r} when it is called, and may use all of it")
    root, package = name.partition(".")[0], function.__globals__.get("__package__") or ""
    for full in (name, f"{package}.{name}"):
        if full in sys.modules and not _is_known(walk, full):
            return _global(walk, full, sys.modules[full], names)
    if root == _OURS or _is_installed(_origin(root)):  # the same before and after it is imported
        walk.modules |= {name} if _is_ours(name) else set()
        return text("imported", name, _package_digest(root))
    raise walk.refuse(function, f"imports {name!r} when it is called, which is not known yet")


def _origin(root: str) -> str | None:
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None else None


#: Where the modules are that the interpreter itself holds.
_INTERPRETER = ("built-in", "frozen")


def _code(walk: Walker, code: types.CodeType) -> bytes:
    """Return the digest of byte code, independent of its location and line numbers."""
    known = _codes.get(code)
    if known is not None:
        return known
    parts = (
        sys.implementation.cache_tag, code.co_code, code.co_consts, code.co_names,
        code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
        code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_exceptiontable,
    )  # fmt: skip
    made = joined("code", (walk.of(part, ".code") for part in parts))
    if len(_codes) >= _MOST_CODES:
        _codes.clear()
    _codes[code] = made
    return made


#: Digests of byte code, which holds nothing but constants.
_codes: dict[types.CodeType, bytes] = {}
_MOST_CODES = 4096


def _method(walk: Walker, method: types.MethodType) -> bytes:
    own = walk.of(method.__func__, ".__func__"), walk.of(method.__self__, ".__self__")
    return joined("method", own)


def _partial(walk: Walker, partial: functools.partial[Any]) -> bytes:
    parts = (partial.func, partial.args, partial.keywords, vars(partial))
    return joined("partial", (walk.of(x, f".{n}") for n, x in zip(
        ("func", "args", "keywords", "__dict__"), parts, strict=True
    )))  # fmt: skip


def _builtin(walk: Walker, function: Any) -> bytes:
    """Return the digest of a C function: its name, or name and the object it is bound to."""
    owner = function.__self__
    if owner is None or isinstance(owner, types.ModuleType):
        return named_digest(walk, function)
    return joined("builtin", (walk.of(function.__name__), walk.of(owner, ".__self__")))


def _descriptor(walk: Walker, descriptor: Any) -> bytes:
    parts = walk.of(descriptor.__objclass__, ".__objclass__"), walk.of(descriptor.__name__)
    return joined("descriptor", parts)


def _wrapper(*names: str) -> Callable[[Walker, Any], bytes]:
    """Return the digest rule for a wrapper that holds functions in these attributes."""

    def rule(walk: Walker, value: Any) -> bytes:
        parts = [walk.of(getattr(value, n), f".{n}") for n in names]
        return joined(type(value).__name__, parts)

    return rule


def _named_module(module: types.ModuleType) -> bytes:
    """Return the digest of a library's module of which code names what it takes."""
    return text("module", module.__name__, _package_digest(module.__name__.partition(".")[0]))


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == _OURS


def _module(walk: Walker, module: types.ModuleType) -> bytes:
    if walk.for_code and is_library(module.__name__):
        if not is_pure(module.__name__, None):
            raise walk.refuse(module, f"is all of the module {module.__name__}")
        walk.modules |= {module.__name__} if _is_ours(module.__name__) else set()
        return _named_module(module)
    if is_library(module.__name__):
        return text("module", module.__name__, _file_digest(module.__name__))
    raise walk.refuse(module, "is a module of your own: name what is used of it instead")


_CACHED = type(functools.lru_cache(lambda: None))

RULES: dict[type, Callable[[Any, Any], bytes]] = {
    types.FunctionType: _function,
    types.CodeType: _code,
    types.MethodType: _method,
    types.BuiltinFunctionType: _builtin,
    types.MethodWrapperType: _builtin,
    types.WrapperDescriptorType: _descriptor,
    types.MethodDescriptorType: _descriptor,
    types.ClassMethodDescriptorType: _descriptor,
    types.GetSetDescriptorType: _descriptor,
    types.MemberDescriptorType: _descriptor,
    types.ModuleType: _module,
    functools.partial: _partial,
    functools.cached_property: _wrapper("func"),
    _CACHED: _wrapper("__wrapped__"),
    property: _wrapper("fget", "fset", "fdel"),
    staticmethod: _wrapper("__func__"),
    classmethod: _wrapper("__func__"),
}

#: Types of C objects that are identified by name alone.
BY_NAME: tuple[type, ...] = (np.ufunc, kind_of(np.sum))


def named_digest(walk: Walker, value: Any) -> bytes:
    """Return the digest of an object that a library module holds under its name, or refuse."""
    for module in (getattr(value, "__module__", None), "numpy", "scipy.special"):
        if module and is_library(module) and _is_found(value, module):
            return _by_name(walk, value, module)
    raise walk.refuse(value, "is not found in its library by its name")


# Classes ------------------------------------------------------------------------------------------

#: Class attributes that Python adds to those the user wrote.
_NOT_WRITTEN = frozenset(("_abc_impl", "__dict__", "__weakref__", "__init_subclass__"))
_WRITTEN: tuple[type[Any], ...] = (types.FunctionType, staticmethod, classmethod, property)


def class_digest(walk: Walker, kind: type) -> bytes:
    """Return the digest of a class; for user classes with bases, methods and attributes."""
    if _is_found(kind) and _is_known(walk, kind.__module__):
        return _by_name(walk, kind)
    held: dict[str, Any] = dict(vars(kind))
    written: list[tuple[str, Any]] = [
        (name, x)
        for name, x in sorted(held.items())
        if name not in _NOT_WRITTEN
        and (not _is_dunder(name) or isinstance(x, _WRITTEN) or _is_called(x))
    ]
    bases = [walk.of(base, ".__bases__") for base in kind.__bases__]
    if type(kind) is not type:
        bases.append(walk.of(type(kind), ".__class__"))
    head = text("class", kind.__qualname__)
    return joined("class", (head, *bases, *walk.named(written)))


def _is_called(x: object) -> bool:
    """Tell whether a special attribute of a class is code: no type, no flag, no annotation."""
    return callable(x) and not isinstance(x, type)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


# Libraries ----------------------------------------------------------------------------------------


def _by_name(walk: Walker, value: Any, module: str | None = None) -> bytes:
    place = module or value.__module__
    name = getattr(value, "__qualname__", None) or value.__name__
    if not walk.for_code:
        return text("library", place, name, _file_digest(place))
    if not is_pure(place, name):
        raise walk.refuse(value, f"of {place} may return something else next time")
    walk.modules |= {place} if _is_ours(place) else set()
    return text("library", place, name, _package_digest(place.partition(".")[0]))


def _is_known(walk: Walker, module: str) -> bool:
    """Tell whether functions of a module are known by their names.

    In keys of code not those of a package that a user installed: it may hold variables.
    """
    if not is_library(module):
        return False
    root = module.partition(".")[0]
    return not walk.for_code or root in _STANDARD or is_pure_package(root)


def _is_found(value: Any, module: str | None = None) -> bool:
    """Tell whether a module holds this same object under its name."""
    found: Any = sys.modules.get(module or getattr(value, "__module__", None) or "")
    for name in (getattr(value, "__qualname__", None) or value.__name__).split("."):
        found = getattr(found, name, None)
    return found is value


def is_library(module: str) -> bool:
    """Tell whether a module is Python's own, of an installed package, or of Remora.

    Where it stands decides, not its name: a user's `profile.py` hides that of Python.
    """
    root = module.partition(".")[0]
    if root == "__main__":
        return False
    loaded = sys.modules.get(module)
    if root in (_OURS, builtins.__name__) or (loaded is None and root in _STANDARD):
        return True
    file = getattr(loaded, "__file__", None)
    if file is None and root in _STANDARD:
        return getattr(getattr(loaded, "__spec__", None), "origin", None) in _INTERPRETER
    return loaded is not None and _is_installed(file)


@functools.cache
def _is_installed(file: str | None) -> bool:
    if file is None or file in _INTERPRETER:
        return file is not None
    real = os.path.realpath(file)
    return any(real.startswith(folder + os.sep) for folder in _installed_folders())


@functools.cache
def _installed_folders() -> frozenset[str]:
    paths = [sysconfig.get_paths()[n] for n in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = {*paths, *site.getsitepackages(), site.getusersitepackages()}
    return frozenset(os.path.realpath(folder) for folder in folders)


def _file_digest(module: str) -> str:
    """Return the digest of the file of a module and of the package that it is a part of."""
    root, loaded = module.partition(".")[0], sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is None or not file.endswith(".py") or root in _STANDARD:
        return _package_digest(root)
    try:
        status = os.stat(file)
        return _content_digest(file, status.st_mtime_ns, status.st_size) + _package_digest(root)
    except OSError:  # inside a zip file
        return _package_digest(root)


_STANDARD = sys.stdlib_module_names
#: Packages that are known by their versions alone: large, and not the user's.
_BY_VERSION = ("casadi", "numpy", "scipy")


@functools.cache
def _package_digest(root: str) -> str:
    """Return the digest of an installed package: its version, and the text of all its files."""
    if root in _STANDARD:
        return sys.version
    try:
        version = importlib.metadata.version(root)
    except importlib.metadata.PackageNotFoundError:  # it has another name: its text says enough
        version = ""
    origin = _origin(root)
    if root in (_OURS, *_BY_VERSION) or origin is None:
        return version
    file = Path(origin)
    if not file.is_file():
        return version
    places = (".",) if file.name == "__init__.py" else (file.name,)
    return version + digest_of_files(file.parent, places)


@functools.cache
def _content_digest(file: str, changed: int, size: int) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()
