"""C99 modules: structs of named numbers, and functions that read and write their members.

    void NAME_update(const NAME_parameters *parameters, NAME_state *state, ...);

A struct is known by its *role* (`parameters`, `state`, ...). A function is a graph whose inputs and
outputs are called `role.member`, or C statements. There are no globals and no dynamic memory.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.export.c_statements import prepared, statements
from remora.codegen.export.c_text import SCALARS, comment, decimal, identifier, number
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import trace, with_symbols
from remora.errors import RemoraError

#: Beginning of every source file: what the bits of the results rely on.
ARITHMETIC = """#ifdef __FAST_MATH__
#error "-ffast-math drops roundings that sine and cosine are made of: compile without it"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* bits as in the reference; gcc: -std=c99 or -ffp-contract=off */
#endif
"""
#: Values of the members of structs: by role, then by name.
Values: TypeAlias = Mapping[str, Mapping[str, Array]]


@dataclass(frozen=True)
class Member:
    """A number or array in a struct.

    Attributes:
        name: name in Python; converted to an identifier.
        shape: `()` for a number; arrays are flat, row after row.
        note: meaning and unit, for the comment.
        c_type: C type; empty for the floating-point type of the module.
    """

    name: str
    shape: tuple[int, ...] = ()
    note: str = ""
    c_type: str = ""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Struct:
    """A struct `NAME_role`.

    Attributes:
        role: what it is for, an identifier.
        members: its members, at least one.
        note: what it holds, for the comment.
        initial: initial values by member, written as the macro `NAME_ROLE`; None: no macro.
        local: whether it is defined in the source file instead of the header.
    """

    role: str
    members: tuple[Member, ...]
    note: str = ""
    initial: Mapping[str, Array] | None = None
    local: bool = False

    def __post_init__(self) -> None:
        """Refuse two members of one name."""
        names = [m.name for m in self.members]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise RemoraError(f"{self.role} would have two members named {', '.join(twice)}")

    @functools.cached_property
    def identifiers(self) -> dict[str, str]:
        """C identifiers of the members, by name."""
        found: dict[str, str] = {}
        for member in self.members:
            found[member.name] = identifier(member.name, found.values())
        return found

    @property
    def signatures(self) -> list[Signature]:
        """Members of floating-point type as inputs of a graph, `role.member`."""
        real = [m for m in self.members if not m.c_type]
        return [Signature(f"{self.role}.{m.name}", m.shape) for m in real]


@dataclass(frozen=True)
class Function:
    """A function `void NAME_function(...)` with one pointer per struct.

    Attributes:
        name: an identifier; empty: the function is called as the module.
        arguments: roles of the structs, in order; those that the module does not have are left out.
        writes: roles of the structs that it changes; the others are const.
        graph: what it computes, inputs and outputs `role.member`; None: see `body`.
        body: C statements, if there is no graph.
        more: further parameters as C declarations.
        notes: comment lines.
        local: whether the function is static.
        uses: what the body needs of <math.h>.
    """

    name: str
    arguments: tuple[str, ...]
    writes: tuple[str, ...]
    graph: Graph | None = None
    body: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    local: bool = False
    uses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """A header and a source file.

    Attributes:
        name: prefix of all names, an identifier.
        dtype: `float64` or `float32`.
        structs: its structs; empty ones must be left out.
        functions: its functions, each after those that it calls.
        about: comment lines at the top of the header.
        includes: standard headers that the header needs.
        text: C text in front of the functions of the source file.
        sizes: numbers of elements of arrays, written as macros `NAME_size_ARRAY`.
    """

    name: str
    dtype: str
    structs: tuple[Struct, ...]
    functions: tuple[Function, ...]
    about: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    text: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def roles(self) -> dict[str, Struct]:
        """The structs by role."""
        return {struct.role: struct for struct in self.structs}

    def called(self, function: Function) -> str:
        """Return the name of a function in C."""
        return f"{self.name}_{function.name}" if function.name else self.name

    def pointers(self, function: Function) -> list[str]:
        """Return the roles of the structs that a function takes."""
        return [role for role in function.arguments if role in self.roles]

    def call(self, function: str, local: Sequence[str] = ()) -> str:
        """Return a call with the address of a variable for each struct.

        Args:
            function: name of the function.
            local: roles of structs that are variables; the others are pointers already.
        """
        own = next(f for f in self.functions if f.name == function)
        passed = [f"&{role}" if role in local else role for role in self.pointers(own)]
        return f"{self.name}_{function}({', '.join(passed)});"


def traced(
    structs: Sequence[Struct], function: Callable[[dict[str, dict[str, Array]]], Values]
) -> Graph:
    """Return the graph of a function on the members of structs.

    Args:
        structs: what it may read.
        function: (values by role and member) -> new values of members, by role and member.
    """
    inputs = [s for struct in structs for s in struct.signatures]
    names: list[str] = []

    def flat(*arrays: Array) -> tuple[Array, ...]:
        values: dict[str, dict[str, Array]] = {struct.role: {} for struct in structs}
        for signature, array in zip(inputs, arrays, strict=True):
            role, _, member = signature.name.partition(".")
            values[role][member] = array
        results: list[Array] = []
        for role, members in function(values).items():
            for member, value in members.items():
                names.append(f"{role}.{member}")
                results.append(value)
        return tuple(results)

    return with_symbols(trace(flat, inputs, names))


def constants(role: str, values: Mapping[str, Array]) -> Graph:
    """Return the graph that sets members of a struct to fixed numbers."""
    graph = Graph((), tuple(Signature(f"{role}.{k}", x.shape) for k, x in values.items()))
    graph.results = [[graph.const(float(e)) for e in x.reshape(-1)] for x in values.values()]
    return graph


def read_elements(graphs: Sequence[Graph]) -> dict[str, list[int]]:
    """Return the elements that any of the graphs reads, by name `role.member`."""
    found: dict[str, set[int]] = {}
    for graph in graphs:
        for (op, a), needed in zip(graph.nodes, graph.needed(), strict=True):
            if needed and op == "input":
                found.setdefault(graph.inputs[int(a[0])].name, set()).add(int(a[1]))
    return {name: sorted(elements) for name, elements in found.items()}


# Text -------------------------------------------------------------------------------------------


def header(module: Module) -> str:
    """Return the text of the header."""
    name, guard = module.name, f"REMORA_{module.name.upper()}_H"
    scalar = SCALARS[module.dtype]
    about = [
        f"{name}: written by Remora. Do not edit this file; write it again.", "", *module.about, "",
        f"Numbers are of type {scalar}. Arrays are flat, row after row. Units are SI, angles in "
        "radians.",
        "There are no globals and there is no dynamic memory: functions may run in several threads",
        "at once, each with its own state. Values are not checked: NaN in, NaN out.",
    ]  # fmt: skip
    sizes = [f"#define {name}_size_{array} {size}" for array, size in module.sizes.items()]
    public = ["\n".join(sizes)] if sizes else []
    public += [_struct(module, s) for s in module.structs if not s.local]
    public += [f"{_documented(module, f)};" for f in module.functions if not f.local]
    body = "\n\n".join(public)
    includes = "".join(f"#include <{x}>\n" for x in module.includes)
    includes += "\n" if includes else ""
    return f"""{comment(about)}
#ifndef {guard}
#define {guard}

{includes}#ifdef __cplusplus
extern "C" {{
#endif

{body}

#ifdef __cplusplus
}}
#endif

#endif
"""


def source(module: Module) -> str:
    """Return the text of the source file."""
    math_used: set[str] = set()
    parts = [_struct(module, s) for s in module.structs if s.local]
    parts += [module.text] if module.text else []
    for function in module.functions:
        body = list(function.body)
        math_used |= set(function.uses)
        if function.graph is not None:
            body, used = _graph_body(module, function)
            math_used |= used
        lines = "\n".join(f"    {line}" for line in body)
        head = _documented(module, function) if function.local else _prototype(module, function)
        parts.append(f"{head}\n{{\n{lines}\n}}")
    about = [
        f"{module.name}: C99, written by Remora, with "
        f"{', '.join(sorted(math_used)) or 'nothing'} of <math.h>. See {module.name}.h.",
    ]
    include = "#include <math.h>\n\n" if math_used else ""
    body = "\n\n".join(parts)
    return f"""{comment(about)}
{include}#include "{module.name}.h"

{ARITHMETIC}
{body}
"""


def layout(signature: Signature, own: str) -> str:
    """Return the memory layout of an array: `(13, 13)  element (i, j) is out[13*i + j]`."""
    text = f"({', '.join(map(str, signature.shape))})" if signature.shape else "one number"
    if len(signature.shape) > 1:
        letters = "ijklmn"[: len(signature.shape)]
        strides = [math.prod(signature.shape[k + 1 :]) for k in range(len(letters))]
        place = " + ".join(
            f"{s}*{x}" if s != 1 else x for s, x in zip(strides, letters, strict=True)
        )
        text += f"  element ({', '.join(letters)}) is {own}[{place}]"
    return text if signature.name == own else f"{text}  {signature.name}"


def initializer(
    module: Module,
    struct: Struct,
    values: Mapping[str, Array],
    literal: Callable[[float, str], str] = number,
) -> str:
    """Return values of a struct as a C initializer; `literal`: (number, dtype) -> its text."""
    parts: list[str] = []
    for member in struct.members:
        flat = np.asarray(values[member.name]).reshape(-1)
        items = [_literal(module, member, x, literal) for x in flat]
        parts.append(f"{{{', '.join(items)}}}" if member.shape else items[0])
    return f"{{{', '.join(parts)}}}"


def _literal(
    module: Module, member: Member, value: Any, literal: Callable[[float, str], str]
) -> str:
    if member.c_type in ("", "double"):
        return literal(float(value), module.dtype if not member.c_type else "float64")
    return f"{int(value)}u"


def _struct(module: Module, struct: Struct) -> str:
    lines: list[str] = []
    for member in struct.members:
        own = struct.identifiers[member.name]
        size = f"[{member.size}]" if member.shape else ""
        shape = layout(Signature(own, member.shape), own) if len(member.shape) > 1 else ""
        note = "; ".join(x for x in (member.note, shape) if x)
        remark = f" {_one_line(note)}" if note else ""
        lines.append(f"    {member.c_type or SCALARS[module.dtype]} {own}{size};{remark}")
    role = f"{module.name}_{struct.role}"
    text = "typedef struct {\n" + "\n".join(lines) + f"\n}} {role};"
    if struct.note:
        text = f"{_one_line(struct.note)}\n{text}"
    if struct.initial is not None:
        macro = f"{module.name}_{struct.role}".upper()
        values = initializer(module, struct, struct.initial, decimal)
        text += f"\n\n/* Initializer of {role}. */\n#define {macro} \\\n    {values}"
    return text


def _one_line(text: str) -> str:
    """Return a comment on one line."""
    return "/* " + re.sub(r"^ \* ", "", comment([text]).splitlines()[1]) + " */"


def _comment_of(function: Function) -> str:
    if len(function.notes) == 1:
        return _one_line(function.notes[0]) + "\n"
    return comment(function.notes) + "\n" if function.notes else ""


def _documented(module: Module, function: Function) -> str:
    return _comment_of(function) + _prototype(module, function)


def _prototype(module: Module, function: Function) -> str:
    passed = [
        f"{'' if role in function.writes else 'const '}{module.name}_{role} *{role}"
        for role in module.pointers(function)
    ]
    static = "static " if function.local else ""
    head = f"{static}void {module.called(function)}("
    indent = ",\n" + " " * len(head)
    listed = ", ".join([*passed, *function.more]) or "void"
    if len(head) + len(listed) + 2 > 100:
        listed = indent.join([*passed, *function.more])
    return f"{head}{listed})"


def _graph_body(module: Module, function: Function) -> tuple[list[str], set[str]]:
    """Return the statements of a function's graph, and what they need of <math.h>."""
    assert function.graph is not None
    graph, roles = prepared(function.graph, module.dtype), module.roles

    def place(signature: Signature, element: int) -> str:
        role, _, name = signature.name.partition(".")
        own = f"{role}->{roles[role].identifiers[name]}"
        return f"{own}[{element}]" if signature.shape else own

    stores: list[tuple[str, int]] = []
    for signature, result in zip(graph.outputs, graph.results, strict=True):
        for j, i in enumerate(result):
            op, a = graph.nodes[i]
            target = place(signature, j)
            if (
                op != "input" or place(graph.inputs[int(a[0])], int(a[1])) != target
            ):  # else unchanged
                stores.append((f"{target} = {{}};", i))
    body, _, math_used = statements(
        graph, module.dtype, lambda k, j: place(graph.inputs[k], j), stores
    )
    text = "\n".join(body)
    unused = [role for role in module.pointers(function) if f"{role}->" not in text]
    return body + [f"(void){role};" for role in unused], math_used
