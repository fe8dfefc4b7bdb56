"""`rm.compile`: the library's functions of a robot as machine code.

    fd = rm.compile(rm.forward_dynamics, robot)      # one function
    fast = rm.compile(robot)                         # all of them, each built on first use
    fast.forward_dynamics(q, v, tau)

The arguments and their shapes follow from the function's signature and the robot: `q` has nq
numbers, `v`, `tau` and `vdot` nv, `wrenches` 6 for each body, and so on.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from remora.codegen.gpu.cuda_kernel import CudaKernel
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.dynamics import floating, formulations, kinematics, momentum
from remora.dynamics.constraints.constraint_report import refuse_redundant
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.derivatives import derivatives, regressor
from remora.dynamics.forces import passive_forces
from remora.dynamics.formulations import FORMULATIONS, usual_formulation
from remora.dynamics.kernels.cache_keys import kernel_key, tables_digest
from remora.dynamics.kernels.compile_options import check_names, check_options
from remora.dynamics.kernels.composed_robot import ComposedRobot
from remora.dynamics.kernels.parameters import parameter
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE, fits_straight_line
from remora.dynamics.kernels.specialized import SpecializedFunction
from remora.dynamics.kernels.tree_recursions import RECURSIONS, loops, uses_loops
from remora.dynamics.lagrangian import center_of_mass_coordinates, reduced
from remora.dynamics.maximal import joint_relations
from remora.dynamics.refusals import WITH_CONSTRAINTS, refuse_function
from remora.errors import RemoraError, UnknownName
from remora.identity.digest import digest_or_none
from remora.identity.table import Table
from remora.model import state
from remora.model.robot import Robot

#: Functions that `rm.compile(robot)` provides as methods.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        kinematics.poses, kinematics.twists, kinematics.accelerations, kinematics.frame_pose,
        kinematics.frame_twist, kinematics.frame_acceleration, kinematics.jacobian,
        kinematics.jacobian_rate,
        momentum.center_of_mass, momentum.center_of_mass_jacobian, momentum.momentum,
        momentum.momentum_matrix, momentum.centroidal_momentum,
        momentum.centroidal_momentum_matrix, momentum.locked_inertia, momentum.kinetic_energy,
        momentum.potential_energy,
        floating.base_response, floating.base_response_rate, floating.generalized_jacobian,
        floating.generalized_jacobian_rate, floating.floating_inverse_dynamics,
        reduced.base_velocity, reduced.reduced_mass_matrix, reduced.reduced_coriolis_matrix,
        reduced.reduced_momentum_force, reduced.reduced_forward_dynamics,
        center_of_mass_coordinates.separated_velocity,
        center_of_mass_coordinates.separated_mass_matrix,
        center_of_mass_coordinates.separated_coriolis_matrix,
        formulations.forward_dynamics, formulations.inverse_dynamics,
        formulations.reaction_wrenches, formulations.mass_matrix, formulations.coriolis_matrix,
        formulations.bias_force, passive_forces.friction_forces,
        derivatives.forward_dynamics_derivatives, derivatives.inverse_dynamics_derivatives,
        regressor.inertia_regressor,
        joint_relations.joint_twists, joint_relations.joint_speeds,
        joint_relations.joint_accelerations, joint_relations.constraint_violation,
        state.integrate, state.difference, state.normalize,
    )
}  # fmt: skip

#: What a kernel can be made for.
TARGETS = ("cpu", "cuda")
#: Parameters that are not numeric arguments: their values are compiled in.
STATIC = frozenset(("frame", "axes", "formulation", "prescribed", "slip_speed"))


@overload
def compile(function: Robot, robot: None = None, **options: Any) -> CompiledRobot: ...
@overload
def compile(
    function: Callable[..., Any], robot: Robot, *, target: Literal["cuda"], **options: Any
) -> CudaKernel: ...
@overload
def compile(
    function: Callable[..., Any], robot: Robot, *, target: Literal["cpu"] = "cpu", **options: Any
) -> Kernel: ...
def compile(
    function: Callable[..., Any] | Robot, robot: Robot | None = None, **options: Any
) -> Kernel | CudaKernel | CompiledRobot:
    """Return a function as machine code, or all of them for a robot.

    Args:
        function: a function of the library, or your own `f(robot, q, ...)` written on arrays; or a
            robot, for all functions of the library.
        robot: the robot whose numbers are compiled in.
        **options: `dtype`: "float64" or "float32". `arguments`: names of the arguments, where the
            optional ones are wanted too: `("q", "v", "tau", "wrenches")`. `fixed`: values of
            parameters to compile in: `{"frame": "tool"}`. `shapes`: of arguments whose names say
            nothing: `{"x": (3,)}`. `parameters`: numbers of the robot left as arguments, after
            the others: `"mass"`, `"com"`, `"inertia"`, `"placement"` for all bodies or joints, or
            of one: `"arm.mass"`, `"elbow.placement"`. `target`: "cpu", or "cuda" for a
            `CudaKernel`.

    Example:
        >>> robot = rm.load("servicer")
        >>> kernel = rm.compile(rm.forward_dynamics, robot)
        >>> q, v = rm.random_state(robot, seed=0)
        >>> q, v = np.tile(q, (1000, 1)), np.tile(v, (1000, 1))
        >>> kernel(q, v, np.zeros_like(v)).shape
        (1000, 13)
    """
    if isinstance(function, Robot) and robot is None:
        check_names(options, CompiledRobot.__init__)
        return CompiledRobot(function, **options)
    if isinstance(function, Robot) or not callable(function):
        what = "a robot" if isinstance(function, Robot) else type(function).__name__  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RemoraError(f"compile takes a function first, rm.compile(f, robot), not {what}")
    if not isinstance(robot, Robot):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = "" if robot is None else f", not {type(robot).__name__}"
        raise RemoraError(f"the robot is missing: rm.compile(function, robot){what}")
    check_names(options, compile_function)
    check_options(
        function, robot, **{n: x for n, x in options.items() if n not in ("dtype", "target")}
    )
    made = compile_function(function, robot, **options)
    return made.ready() if isinstance(made, Kernel) else made


def compile_function(
    function: Callable[..., Any],
    robot: Robot,
    dtype: str = "float64",
    arguments: Sequence[str] | None = None,
    fixed: Mapping[str, Any] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    parameters: Sequence[str] = (),
    target: str = "cpu",
) -> Any:
    """Return one function as a kernel; see `compile`."""
    if isinstance(robot, ComposedRobot) and function is formulations.forward_dynamics:
        return robot.forward_dynamics
    if target not in TARGETS:
        raise UnknownName("target", target, TARGETS)
    if not parameters:
        refuse_function(robot, function)
    _refuse_large_loops(robot, function)
    if dtype == "float32":
        refuse_redundant(robot, _called(function))
    fixed = _kept_apart(fixed or {})
    name, names, signatures = _signatures(function, robot, arguments, fixed, shapes, parameters)
    key = kernel_key(function, robot, signatures, fixed, parameters)
    usual = _shapes(robot)
    rolled = (
        key is not None
        and not parameters
        and all(s.shape == usual.get(s.name) for s in signatures)
        and _rolls(robot, function, fixed, target)
    )
    on_arrays = SpecializedFunction(
        function, robot, name, names, fixed, tuple(parameters), rolled, tables_digest(),
        Table.changes,
    )  # fmt: skip
    as_loops = functools.partial(loops, robot, name, signatures) if rolled else None
    if target == "cuda":
        return CudaKernel(on_arrays, signatures, name, dtype, as_loops)
    return Kernel(on_arrays, signatures, name, dtype, key, as_loops)


def specialized(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Sequence[str] | None,
    fixed: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]] | None,
    parameters: Sequence[str],
) -> tuple[SpecializedFunction, list[Signature]]:
    """Return a function of a robot as one of arrays alone, and their names and shapes."""
    fixed = _kept_apart(fixed)
    name, names, signatures = _signatures(function, robot, arguments, fixed, shapes, parameters)
    made = SpecializedFunction(
        function, robot, name, names, fixed, tuple(parameters), False, tables_digest(),
        Table.changes,
    )  # fmt: skip
    return made, signatures


def _signatures(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Sequence[str] | None,
    fixed: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]] | None,
    parameters: Sequence[str],
) -> tuple[str, tuple[str, ...], list[Signature]]:
    """Return the name, the names of the arrays, and the signatures, the parameters' included."""
    names = _argument_names(function, arguments, fixed)
    sizes = _shapes(robot) | dict(shapes or {})
    name = _called(function)
    for argument in names:
        if argument not in sizes:
            raise RemoraError(
                f"the shape of the argument {argument!r} of {name} is missing: "
                f"shapes={{{argument!r}: (3,)}}, or fix it: fixed={{{argument!r}: ...}}"
            )
    inputs = [Signature(argument, sizes[argument]) for argument in names]
    return name, names, [*inputs, *(parameter(robot, number)[0] for number in parameters)]


def _refuse_large_loops(robot: Robot, function: Callable[..., Any]) -> None:
    """Raise if a function with active constraints would need a straight line that is too long."""
    if _called(function) in WITH_CONSTRAINTS and not fits_straight_line(robot):
        active = active_constraints(robot)
        if active:
            raise RemoraError(
                f"{_called(function)} of {robot.name!r} with active constraints "
                f"({', '.join(repr(c.name) for c in active[:5])}) is compiled as a straight line, "
                f"for at most {LARGEST_STRAIGHT_LINE} bodies, and it has {len(robot.bodies)}: "
                "loops over the bodies do not take constraints; call it uncompiled, on arrays"
            )


def _kept_apart(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of the values that are compiled in, so that later changes have no effect."""
    try:
        return copy.deepcopy(dict(fixed))
    except Exception:  # values that cannot be copied have no key either: traced at once
        return dict(fixed)


def _rolls(
    robot: Robot, function: Callable[..., Any], fixed: Mapping[str, Any], target: str
) -> bool:
    """Tell whether a library function is compiled as loops over the robot's bodies."""
    row = RECURSIONS.get(function.__name__)
    if function.__name__ in WITH_CONSTRAINTS and active_constraints(robot):
        return False
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
    if defaults.get("formulation", "") is None:
        defaults["formulation"] = usual_formulation(robot)
    usual = all(isinstance(x, str) and x == defaults[name] for name, x in fixed.items())
    formulation: Any = defaults.get("formulation")
    if row is None or not usual or not FORMULATIONS.is_own(formulation):
        return False
    if not row.followers and any(joint.mimic is not None for joint in robot.joints):
        return False
    if target == "cuda" and row.climb is not None:  # not yet implemented as loops on CUDA
        return not fits_straight_line(robot)
    return uses_loops(robot, row.straight)


class UnknownFunction(UnknownName, AttributeError):
    """An attribute of a compiled robot that is no function of the library."""


class CompiledRobot:
    """All functions of the library as machine code for one robot.

    `fast.forward_dynamics(q, v, tau)` takes the same arguments as `rm.forward_dynamics(robot, ...)`
    and is compiled when first used, or taken from the cache.
    """

    # One attribute for each row of FUNCTIONS, made by `__getattr__` when first used; a test
    # compares both.
    poses: CompiledMethod
    twists: CompiledMethod
    accelerations: CompiledMethod
    frame_pose: CompiledMethod
    frame_twist: CompiledMethod
    frame_acceleration: CompiledMethod
    jacobian: CompiledMethod
    jacobian_rate: CompiledMethod
    center_of_mass: CompiledMethod
    center_of_mass_jacobian: CompiledMethod
    momentum: CompiledMethod
    momentum_matrix: CompiledMethod
    centroidal_momentum: CompiledMethod
    centroidal_momentum_matrix: CompiledMethod
    locked_inertia: CompiledMethod
    kinetic_energy: CompiledMethod
    potential_energy: CompiledMethod
    base_response: CompiledMethod
    base_response_rate: CompiledMethod
    generalized_jacobian: CompiledMethod
    generalized_jacobian_rate: CompiledMethod
    floating_inverse_dynamics: CompiledMethod
    base_velocity: CompiledMethod
    reduced_mass_matrix: CompiledMethod
    reduced_coriolis_matrix: CompiledMethod
    reduced_momentum_force: CompiledMethod
    reduced_forward_dynamics: CompiledMethod
    separated_velocity: CompiledMethod
    separated_mass_matrix: CompiledMethod
    separated_coriolis_matrix: CompiledMethod
    forward_dynamics: CompiledMethod
    inverse_dynamics: CompiledMethod
    reaction_wrenches: CompiledMethod
    mass_matrix: CompiledMethod
    coriolis_matrix: CompiledMethod
    bias_force: CompiledMethod
    friction_forces: CompiledMethod
    forward_dynamics_derivatives: CompiledMethod
    inverse_dynamics_derivatives: CompiledMethod
    inertia_regressor: CompiledMethod
    joint_twists: CompiledMethod
    joint_speeds: CompiledMethod
    joint_accelerations: CompiledMethod
    constraint_violation: CompiledMethod
    integrate: CompiledMethod
    difference: CompiledMethod
    normalize: CompiledMethod

    def __init__(
        self, robot: Robot, dtype: str = "float64", threads: int = 1, target: str = "cpu"
    ) -> None:
        """Store the options; nothing is compiled yet.

        Args:
            robot: the robot.
            dtype: "float64" or "float32".
            threads: number of CPU threads per batch; 0 for one per processor.
            target: "cpu" or "cuda".
        """
        if target not in TARGETS:
            raise UnknownName("target", target, TARGETS)
        self.robot, self.dtype, self.threads, self.target = robot, dtype, threads, target

    if not TYPE_CHECKING:  # type checkers know the attributes above, and no others

        def __getattr__(self, name: str) -> CompiledMethod:
            """Return a function of the library for this robot."""
            if name.startswith("_"):
                raise AttributeError(name)
            if name not in FUNCTIONS:
                raise UnknownFunction("function to compile", name, FUNCTIONS)
            method = CompiledMethod(FUNCTIONS[name], self)
            self.__dict__[name] = method  # found directly from now on
            return method

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value, independent of what has been compiled so far."""
        return self.robot, self.dtype, self.target

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor arguments; a copy takes its kernels from the cache."""
        return type(self), (self.robot, self.dtype, self.threads, self.target)

    def __dir__(self) -> list[str]:
        """Return the attributes and the functions, for completion."""
        return [*super().__dir__(), *FUNCTIONS]

    def __repr__(self) -> str:
        """Return the robot's name and the functions compiled so far."""
        made = [n for n, m in self.__dict__.items() if isinstance(m, CompiledMethod) and m.kernels]
        shown = f"{self.robot.name!r}, {self.dtype}, {self.target}"
        return f"CompiledRobot({shown}, compiled: {', '.join(made)})"


class CompiledMethod:
    """One function of a CompiledRobot: one kernel per set of fixed parameters."""

    def __init__(self, function: Callable[..., Any], owner: CompiledRobot) -> None:
        self._function, self._owner = function, owner
        self._signature = inspect.signature(function)
        self._options = {"threads": owner.threads} if owner.target == "cpu" else {}
        self._fast: Any = None
        self._made_at = -1
        self._plain: Any = None  # the kernel without fixed or optional parameters
        self.kernels: dict[tuple[Any, ...], Kernel | CudaKernel] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Evaluate as the function would, without the robot as first argument.

        On a GPU also `stream=`, see `CudaKernel`.
        """
        if self._made_at == Table.changes and out is None and not named:
            result = self._fast(*arguments)
            if result is not None:
                return result
        options = dict(self._options)
        if "stream" in named and self._owner.target == "cuda":
            options["stream"] = named.pop("stream")
        kernel, arrays = self.kernel(*arguments, **named)
        result = kernel(*arrays, out=out, **options)
        if kernel is self._plain and self._plain.fast is not None:
            self._fast, self._made_at = self._plain.fast, Table.changes
        return result

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value."""
        return self._function, self._owner

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._owner, self._function.__name__)

    def kernel(self, *arguments: Any, **named: Any) -> tuple[Kernel | CudaKernel, list[Any]]:
        """Return the kernel that such a call uses, and its input arrays."""
        try:
            bound = self._signature.bind(self._owner.robot, *arguments, **named).arguments
        except TypeError as error:
            raise RemoraError(f"{self._function.__name__}: {error}") from None
        given = {k: v for k, v in list(bound.items())[1:] if v is not None}
        static = {k: v for k, v in given.items() if k in STATIC}
        arrays = {k: v for k, v in given.items() if k not in STATIC}
        values = _static_key(static)
        key = None if values is None else (tuple(arrays), values, Table.changes)
        kernel = None if key is None else self.kernels.get(key)
        if kernel is None:
            robot, dtype, target = self._owner.robot, self._owner.dtype, self._owner.target
            kernel = compile_function(
                self._function, robot, dtype, tuple(arrays), static, target=target
            )
            if key is not None:
                self.kernels[key] = kernel
            plain = not static and tuple(arrays) == _required(self._function)
            if plain and isinstance(kernel, Kernel):
                self._plain = kernel
        return kernel, list(arrays.values())


def _static_key(static: Mapping[str, Any]) -> object:
    """Return the key of the compiled-in values, or None if they have no identity by value."""
    given = tuple(sorted(static.items()))
    plain = all(type(value) is str for _, value in given)
    return given if plain else digest_or_none(given)


def _required(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return tuple(p.name for p in parameters if p.default is p.empty and p.name not in STATIC)


def _argument_names(
    function: Callable[..., Any], arguments: Sequence[str] | None, fixed: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the arguments of the kernel in order, checked against the function's parameters."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    known = [p.name for p in parameters]
    for name in (*(arguments or ()), *fixed):
        if name not in known:
            raise UnknownName(f"parameter of {_called(function)}", name, known)
    if arguments is not None:
        absent = [n for n in _required(function) if n not in arguments and n not in fixed]
        if absent or len(set(arguments)) < len(arguments):
            what = f"{', '.join(absent)} missing" if absent else "one is named twice"
            raise RemoraError(f"arguments={tuple(arguments)} of {_called(function)}: {what}")
        return tuple(arguments)
    missing = [p.name for p in parameters if p.default is p.empty and p.name in STATIC]
    missing = [name for name in missing if name not in fixed]
    if missing:
        raise RemoraError(
            f"{_called(function)} needs {', '.join(missing)} when it is compiled: "
            f"fixed={{{missing[0]!r}: ...}}"
        )
    return tuple(name for name in _required(function) if name not in fixed)


def _shapes(robot: Robot) -> dict[str, tuple[int, ...]]:
    """Return argument shapes by the argument names used throughout the library."""
    nq, nv, bodies = robot.nq, robot.nv, (len(robot.bodies), 6)
    rest = nv - robot.joints[0].v.stop
    return {
        "q": (nq,), "q0": (nq,), "q1": (nq,), "v": (nv,), "tau": (nv,), "vdot": (nv,), "dq": (nv,),
        "vdot_joints": (rest,), "joint_speeds": (rest,), "joint_forces": (rest,), "momentum": (6,),
        "wrenches": bodies, "twists": bodies, "accelerations": bodies,
        "point": (3,), "t": (),
    }  # fmt: skip


def _called(function: Callable[..., Any]) -> str:
    """Return the name of a function; partial objects and instances have none of their own."""
    return getattr(function, "__name__", type(function).__name__)
