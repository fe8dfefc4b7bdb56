"""Statements of traced programs with other names, so that several programs become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from remora.codegen.integration.statements import (
    For,
    ForEach,
    GraphBlock,
    Host,
    If,
    Random,
    Record,
    Repeat,
    Run,
    Sample,
    Statement,
    While,
    graph_block,
)
from remora.codegen.ir.graph import Graph, Signature


def renamed(body: Sequence[Statement], name: Callable[[str], str]) -> list[Statement]:
    """Return statements that write no outputs, with other names of what they read and write.

    Args:
        body: statements of a program; `Sample` and `Record` are left out, and so is what is empty
            without them.
        name: name -> the new name.
    """
    found: list[Statement] = []
    for s in body:
        match s:
            case Run():
                found.append(Run(_renamed_block(graph_block(s), name)))
            case Random():
                names = {k: name(getattr(s, k)) for k in ("cell", "seed", "run", "tick")}
                found.append(replace(s, **names))
            case Host():
                reads, writes = (tuple(map(name, own)) for own in (s.reads, s.writes))
                found.append(replace(s, reads=reads, writes=writes))
            case Sample() | Record():
                pass
            case For():
                found.append(replace(s, body=renamed(s.body, name), name=name(s.name)))
            case ForEach():
                found.append(ForEach(renamed(s.body, name)))
            case Repeat():
                inner = renamed(s.body, name)
                found.append(Repeat(name(s.count), inner, name(s.index)))
            case While() | If():
                inner = renamed(s.body, name)
                if inner:
                    found.append(replace(s, cell=name(s.cell), body=inner))
    return found


def _renamed_block(block: GraphBlock, name: Callable[[str], str]) -> GraphBlock:
    graph = block.graph
    inputs, outputs = (
        tuple(Signature(name(s.name), s.shape) for s in own)
        for own in (graph.inputs, graph.outputs)
    )
    known = {node: i for i, node in enumerate(graph.nodes) if node[0] == "input"}
    made = Graph(inputs, outputs, graph.nodes, graph.results, graph.waist, known)
    return replace(block, graph=made)
