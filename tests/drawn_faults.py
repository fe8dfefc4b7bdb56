"""Faults drawn at random: a file, one of its lines in a function, one of the faults of the line.

A sign, an operator, a dropped term or sign, a number doubled, an index off, a condition inverted,
a function swapped for its opposite. Left alone are texts, types, defaults, constants of modules,
numbers that are passed as they are (sizes, colours, tolerances), and what raises an error.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*",
             ast.FloorDiv: "*", ast.Mod: "//"}  # fmt: skip
OPPOSITES = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
             ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}  # fmt: skip
PAIRS = ["min max", "sin cos", "argmin argmax", "nanmin nanmax", "minimum maximum", "any all",
         "floor ceil", "degrees radians", "lower upper"]  # fmt: skip
SWAPS = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}
DROPPED = ("conjugate", "transpose", "abs", "absolute", "sqrt", "inverse", "degrees", "radians")
#: Numbers in these are part of a computation.
COMPUTING = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Slice)


class Change(NamedTuple):
    """What stands at bytes of a file instead: a fault."""

    line: int
    start: int
    stop: int
    new: str


def changes(source: bytes, inside: bool = False) -> list[Change]:
    """Return all single faults of a source; with some of them it is no Python any more.

    Args:
        source: of a module, or of an expression.
        inside: whether it is part of a function.
    """
    tree, starts = ast.parse(source), [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(node: ast.expr) -> tuple[int, int]:
        end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        return starts[node.lineno - 1] + node.col_offset, end

    def of(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[int, int, str]]:
        """Yield start, stop and new text of the faults of one node."""
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            stop = place(node.left)[1]
            if any(isinstance(x, (ast.List, ast.Tuple, ast.JoinedStr)) or
                   (isinstance(x, ast.Constant) and isinstance(x.value, str))
                   for x in (node.left, node.right)):  # fmt: skip
                return
            yield stop, place(node.right)[0], f" {OPERATORS[type(node.op)]} "
            yield stop, place(node)[1], ""
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITES:
            stop = place(node.left)[1]
            yield stop, place(node.comparators[0])[0], f" {OPPOSITES[type(node.ops[0])]} "
        elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
            word = " or " if isinstance(node.op, ast.And) else " and "
            yield place(node.values[0])[1], place(node.values[1])[0], word
        elif isinstance(node, ast.UnaryOp):
            yield place(node)[0], place(node.operand)[0], " "
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            if isinstance(parent, COMPUTING) or (isinstance(parent, ast.keyword)
                                                 and parent.arg == "axis"):  # fmt: skip
                yield *place(node), repr(2 * node.value or type(node.value)(1))
        elif isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, ast.Compare):
            start, stop = place(node.test)
            yield start, stop, f"not ({source[start:stop].decode()})"
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            stop = place(node.func)[1]
            if name in SWAPS:
                yield stop - len(name), stop, SWAPS[name]
            if name in DROPPED and len(node.args) == 1 and not node.keywords:
                yield place(node)[0], stop, ""

    def walk(node: ast.AST, parent: ast.AST | None, inside: bool) -> Iterator[Change]:
        if isinstance(node, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.arguments)):
            return
        if isinstance(node, ast.JoinedStr):  # Python 3.11 misplaces what is within
            start, stop = place(node)
            for part in (x.value for x in node.values if isinstance(x, ast.FormattedValue)):
                text = b"{" + ast.unparse(part).replace("'", '"').encode()
                at = source.find(text, start, stop) + 1
                for change in changes(text[1:], True) if at and b"\n" not in text else ():
                    span = change.start + at, change.stop + at
                    yield Change(node.lineno + source.count(b"\n", start, at), *span, change.new)
            return
        if inside:
            for start, stop, new in of(node, parent):
                if b"\n" not in source[start:stop]:
                    yield Change(source.count(b"\n", 0, start) + 1, start, stop, new)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.AnnAssign) and child is node.annotation):
                yield from walk(child, node, inside or isinstance(node, ast.FunctionDef))

    return list(dict.fromkeys(walk(tree, None, inside)))


def _valid(source: bytes, change: Change) -> bool:
    try:
        made = ast.parse(changed(source, change))
    except SyntaxError:
        return False
    return ast.dump(made) != ast.dump(ast.parse(source))


def changed(source: bytes, change: Change) -> bytes:
    """Return a source with a fault."""
    return source[: change.start] + change.new.encode() + source[change.stop :]


def drawn(count: int, seed: int, folders: list[Path]) -> list[tuple[Path, Change]]:
    """Return `count` different faults: a file, a line of it and a fault of the line, at random."""
    choose, known = random.Random(seed), dict[Path, list[Change]]()
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    found: list[tuple[Path, Change]] = []
    while len(found) < count:
        file = choose.choice(files)
        if file not in known:
            known[file] = changes(file.read_bytes())
        lines = sorted({change.line for change in known[file]})
        if lines:
            line = choose.choice(lines)
            pick = choose.choice([change for change in known[file] if change.line == line])
            if (file, pick) not in found and _valid(file.read_bytes(), pick):
                found.append((file, pick))
    return found
