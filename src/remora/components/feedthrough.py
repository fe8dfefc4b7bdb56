"""Direct dependence of a component's outputs on its inputs, found by tracing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, lasting
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import trace
from remora.components import actions
from remora.components.component import Component, Interface, parameters, with_parameters
from remora.components.context import context_of
from remora.components.returned_values import checked
from remora.components.signals import STATE
from remora.errors import RemoraError
from remora.model.robot import Robot

#: Array and index of an element.
Element = tuple[str, int]
_Robots = tuple[Robot, Robot | None]


class Dependence(NamedTuple):
    """What a component depends on.

    Attributes:
        outputs: the inputs on which each output depends directly.
        read: array and element of everything on which anything depends: `("q", 3)`,
            `("inputs.rate", 0)`, ...
        elements: of the outputs `q` and `v` of an estimate of the state, the same for each element.
        rest: the same of all that it computes but these outputs.
        error: why it cannot be traced; then everything is taken to depend on everything.
    """

    outputs: dict[str, frozenset[str]]
    read: frozenset[Element]
    elements: Mapping[str, tuple[frozenset[Element], ...]]
    rest: frozenset[Element] = frozenset()
    error: RemoraError | None = None

    @property
    def reads_robot(self) -> bool:
        """Whether anything depends on the state of the robot."""
        return any(name in STATE for name, _ in self.read)

    @property
    def reads_state(self) -> bool:
        """Whether anything depends on the state, or on inputs that provide one."""
        return any(name.removeprefix("inputs.") in STATE for name, _ in self.read)


def dependence(
    robot: Robot, name: str, component: Component, interface: Interface,
    design: Robot | None = None, thorough: bool = False,
) -> Dependence:  # fmt: skip
    """Return the inputs and states that a component depends on.

    The dependence is that for any values of the parameters: a gain that is zero here may differ in
    a run of a batch. Parameters on whose values the component decides cannot be symbols; the
    dependence is that for their values.

    Args:
        robot: the robot with which it computes.
        name: name of the component.
        component: the component.
        interface: its interface.
        design: the design, if it is another.
        thorough: whether what it reads of the state is that for any values of the parameters, too.
    """
    inputs = {k: s.shape for k, s in interface.inputs.items()}
    outputs = {k: s.shape for k, s in interface.outputs.items()}
    sizes = {"q": robot.nq, "v": robot.nv} | {
        f"inputs.{k}": s.size for k, s in interface.inputs.items()
    }
    everything = frozenset((key, i) for key, size in sizes.items() for i in range(size))
    try:
        arguments, graph = _traced((robot, design), name, component, interface, ())
    except RemoraError as error:
        return Dependence(
            dict.fromkeys(outputs, frozenset(inputs)), everything, {}, everything, error
        )
    except Exception as error:
        why = RemoraError(f"{type(error).__name__}: {error}")
        return Dependence(
            dict.fromkeys(outputs, frozenset(inputs)), everything, {}, everything, why
        )
    if thorough or (inputs and outputs):
        arguments, graph = _with_symbolic_parameters(
            (robot, design), name, component, interface, (arguments, graph)
        )

    def below(nodes: Sequence[int]) -> frozenset[Element]:
        return frozenset((arguments[i].name, k) for i, k in _elements_below(graph, nodes))

    places = {f"inputs.{k}": k for k in inputs}
    found: dict[str, frozenset[str]] = {}
    elements: dict[str, tuple[frozenset[Element], ...]] = {}
    estimates = STATE if component.estimates_state else ()
    for output, result in zip(outputs, graph.results, strict=False):
        used = {name for name, _ in below(result)}
        found[output] = frozenset(places[n] for n in used if n in places)
        if output in estimates:
            elements[output] = tuple(below([node]) for node in result)
    computed = [*zip(outputs, graph.results, strict=False)]
    computed += [("", result) for result in graph.results[len(outputs) :]]
    rest = below([i for key, result in computed if key not in elements for i in result])
    return Dependence(found, below([i for r in graph.results for i in r]), elements, rest)


def _with_symbolic_parameters(
    robots: _Robots, name: str, component: Component, interface: Interface,
    traced: tuple[list[Signature], Graph],
) -> tuple[list[Signature], Graph]:  # fmt: skip
    """Return the graph with as many parameters as can be symbols."""
    known = tuple(parameters(component))
    for names in (known, *((key,) for key in known)):
        wanted = (*(s.name.partition(".")[2] for s in traced[0] if _is_parameter(s)), *names)
        try:
            traced = _traced(robots, name, component, interface, tuple(dict.fromkeys(wanted)))
        except Exception:  # it decides on the value of a parameter
            continue
        if names == known:
            break
    return traced


def _is_parameter(argument: Signature) -> bool:
    return argument.name.startswith("parameters.")


def _traced(
    robots: _Robots, name: str, component: Component, interface: Interface, symbolic: Sequence[str]
) -> tuple[list[Signature], Graph]:
    """Return arguments and graph of all that a component computes, its outputs first.

    Args:
        robots: that with which it computes, and the design, if it is another.
        name: name of the component.
        component: the component.
        interface: its interface.
        symbolic: names of the parameters that are arguments of the graph.
    """
    values, (robot, design) = parameters(component), robots
    groups = {
        "continuous": {k: s.shape for k, s in interface.continuous.items()},
        "discrete": {k: s.shape for k, s in interface.discrete.items()},
        "inputs": {k: s.shape for k, s in interface.inputs.items()},
        "noise": {k: (n,) for k, n in interface.noise.items()},
        "parameters": {k: values[k].shape for k in symbolic},
    }
    arguments = [Signature("t", ()), Signature("q", (robot.nq,)), Signature("v", (robot.nv,)),
                 Signature("phase", (2,))]  # fmt: skip
    arguments += [Signature(f"{g}.{k}", s) for g, part in groups.items() for k, s in part.items()]
    outputs = {k: s.shape for k, s in interface.outputs.items()}
    sampled = component.sample_time is not None

    def evaluated(*arrays: Array) -> tuple[Array, ...]:
        rest = iter(arrays[4:])
        named = {g: {k: next(rest) for k in part} for g, part in groups.items()}
        t, q, v, phase = arrays[:4]
        context = context_of(
            robot, named, t, q, v, sampled, lambda: phase, design, component.uses_design
        )
        own = with_parameters(component, {k: lasting(x) for k, x in named["parameters"].items()})
        found = checked(f"outputs of component {name!r}", outputs, own.outputs(context))
        more: list[Array] = [a.numbers() for a in actions.listed("act", own.act(context))]
        for method, shapes in (("derivative", groups["continuous"]),
                               ("update", groups["discrete"] if sampled else {}),
                               ("crossings", dict.fromkeys(interface.events, ()))):  # fmt: skip
            if shapes:
                more += checked(method, shapes, getattr(own, method)(context)).values()
        return (*(found[k] for k in outputs), *more, np.zeros(1))

    return arguments, trace(evaluated, arguments)


def _elements_below(graph: Graph, roots: Sequence[int]) -> set[tuple[int, int]]:
    """Return array and element of the inputs on which nodes depend."""
    found: set[tuple[int, int]] = set()
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        op, arguments = graph.nodes[i]
        if op == "input":
            found.add((int(arguments[0]), int(arguments[1])))
        elif op != "const":
            stack += [int(a) for a in arguments]
    return found
