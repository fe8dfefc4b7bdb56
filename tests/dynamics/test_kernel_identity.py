"""A kernel's key holds all that it depends on: every field changes the key, and the result."""

import dataclasses
import functools
import inspect
import os
import shutil

import casadi
import numpy as np
import pytest

import remora as rm
from remora.codegen import kernel_cache
from remora.codegen.ir.graph import Signature
from remora.dynamics.forces.equations_of_motion import PassiveParameters, state_derivative
from remora.dynamics.formulations import Formulation
from remora.dynamics.kernels.cache_keys import kernel_key
from remora.dynamics.kernels.compiled import FUNCTIONS, STATIC
from remora.dynamics.kernels.kernel_memory import kernel as run_kernel
from remora.model.constraint import Constraint
from remora.model.robot import Body, Frame, Geometry, Joint, Limits, Mimic, Named, Robot
from remora.model.robot_fields import FIELDS

PARTS = {
    "robot": Robot, "body": Body, "joint": Joint, "limits": Limits, "mimic": Mimic, "frame": Frame,
    "geometry": Geometry, "constraint": Constraint,
}  # fmt: skip


@functools.cache
def made():
    """A robot in which every field of every part has a value: a base, an arm, a finger pair."""
    b = rm.Builder("hand", gravity=(0.1, 0.2, -9.0))
    b.body("base", mass=5.0, com=(0.1, 0.0, 0.2), inertia=(1.0, 1.2, 1.4))
    b.joint("root", "free", None, "base")
    b.body("arm", mass=2.0, com=(0.0, 0.3, 0.0), inertia=(0.2, 0.1, 0.2))
    b.joint(
        "elbow", "helical", "base", "arm", xyz=(0.3, 0.1, 0.0), axis=(0.0, 0.6, 0.8), pitch=0.1,
        lower=-0.2, upper=0.3, velocity=2.0, effort=5.0, damping=0.3, friction=0.2,
        rotor_inertia=0.05, stiffness=2.0, spring_reference=0.1,
    )  # fmt: skip
    for name in ("left", "right"):
        b.body(f"{name} finger", mass=0.3, com=(0.0, 0.1, 0.0), inertia=(0.01, 0.01, 0.01))
    b.joint("left", "revolute", "arm", "left finger", axis=(1.0, 0.0, 0.0), lower=-1.0, upper=1.0)
    b.joint(
        "right", "revolute", "arm", "right finger", axis=(1.0, 0.0, 0.0),
        mimic=("left", -1.0, 0.1),
    )  # fmt: skip
    b.frame("tool", "arm", xyz=(0.0, 0.6, 0.0))
    robot = b.build()
    shape = Geometry("box", (1.0, 1.0, 1.0), robot.joints[0].placement, (1.0, 0.0, 0.0, 1.0))
    here = robot.joints[0].placement
    rod = Constraint(
        "rod", "rod", 0, 2, here, here, np.eye(3)[:1], *np.array([0.1, 0.5, 2.0, 0.3]),
        active=False,
    )  # fmt: skip
    return robot.replace(
        bodies=[dataclasses.replace(x, geometry=(shape,)) for x in robot.bodies],
        frames=[*robot.frames],
        constraints=[rod],
    )


def changed(value, row, item):
    """Return another value of a field; a kind of field without a rule fails."""
    rules = {
        "numbers": lambda: np.asarray(value) * 1.01 + 0.011,
        "flag": lambda: not value,
        "text": lambda: "prismatic" if row.name == "kind" else f"{value} 2",
        "body": lambda: value - 1,
        "joint": lambda: value - 1,
        "end": lambda: value - 1,
        "slice": lambda: slice(value.start, value.stop + 1),
        "part": lambda: None if value is None else value,
        "parts": lambda: type(value)(value[:-1], value.what) if isinstance(value, Named) else (),
        "plain": lambda: ("noticed",) if row.name == "warnings" else "other",
        "derived": lambda: value + 1,
    }
    return rules[row.holds]()


def item_of(robot, part):
    """Return a part with all its fields set, and how to put another in its place."""
    if part == "robot":
        return robot, lambda new: new
    if part == "body":
        return robot.bodies[1], lambda new: rebuilt(robot, "bodies", 1, new)
    if part == "joint":
        return robot.joints[1], lambda new: rebuilt(robot, "joints", 1, new)
    if part == "limits":
        joint = robot.joints[1]
        return joint.limits, lambda new: rebuilt(
            robot, "joints", 1, dataclasses.replace(joint, limits=new)
        )
    if part == "mimic":
        joint = robot.joints[3]
        return joint.mimic, lambda new: rebuilt(
            robot, "joints", 3, dataclasses.replace(joint, mimic=new)
        )
    if part == "frame":
        return robot.frames[0], lambda new: rebuilt(robot, "frames", 0, new)
    if part == "constraint":
        return robot.constraints[0], lambda new: rebuilt(robot, "constraints", 0, new)
    body = robot.bodies[1]
    return body.geometry[0], lambda new: rebuilt(
        robot, "bodies", 1, dataclasses.replace(body, geometry=(new,))
    )


def rebuilt(robot, name, place, new):
    """Return the robot with another part, whether that is possible or not: only keys are made."""
    items = list(getattr(robot, name))
    items[place] = new
    return dataclasses.replace(robot, **{name: Named(items, getattr(robot, name).what)})


ALL_FIELDS = [
    (part, field.name, field.init) for part, kind in PARTS.items()
    for field in dataclasses.fields(kind)
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_the_table_has_every_field_of_every_dataclass(part):
    assert [row.name for row in FIELDS[part]] == [f.name for f in dataclasses.fields(PARTS[part])]


@pytest.mark.parametrize(("part", "name", "init"), ALL_FIELDS)
def test_every_field_changes_the_identity_and_the_key(part, name, init):
    row = next(row for row in FIELDS[part] if row.name == name)
    if not init:
        assert row.holds == "derived"
        assert not row.seen
        return
    robot = made()
    item, put = item_of(robot, part)
    if row.holds == "part" and name == "limits":
        limits = dataclasses.replace(item.limits, upper=item.limits.upper + 1.0)
        other = put(dataclasses.replace(item, limits=limits))
    elif row.holds == "part":
        other = put(dataclasses.replace(item, mimic=Mimic(0, 2.0, 0.5)))
    else:
        value = changed(getattr(item, name), row, item)
        other = put(dataclasses.replace(item, **{name: value}))
    same = put(dataclasses.replace(item))
    assert same == robot
    assert hash(same) == hash(robot)
    assert key(same) == key(robot) is not None
    assert (other != robot) == row.compared
    assert (key(other) != key(robot)) == row.seen


def key(robot, function=rm.mass_matrix, fixed=None, parameters=()):
    return kernel_key(function, robot, [Signature("q", (8,))], fixed or {}, parameters)


# Results ------------------------------------------------------------------------------------------

#: Every number that an equation sees, and a function that depends on it.
DEPENDS = {
    ("robot", "gravity"): rm.potential_energy,
    ("body", "mass"): rm.mass_matrix,
    ("body", "com"): rm.mass_matrix,
    ("body", "inertia"): rm.mass_matrix,
    ("joint", "placement"): rm.poses,
    ("joint", "axes"): rm.poses,
    ("joint", "pitch"): rm.poses,
    ("joint", "damping"): rm.dynamics.friction_forces,
    ("joint", "friction"): rm.dynamics.friction_forces,
    ("joint", "rotor_inertia"): rm.mass_matrix,
    ("joint", "stiffness"): rm.dynamics.spring_forces,
    ("joint", "spring_reference"): rm.dynamics.spring_forces,
    ("limits", "lower"): rm.dynamics.stop_forces,
    ("limits", "upper"): rm.dynamics.stop_forces,
    ("mimic", "ratio"): rm.poses,
    ("mimic", "offset"): rm.poses,
    ("frame", "placement"): rm.frame_pose,
}
#: Numbers that simulations read, not equations: limits of what a drive gives and how fast it turns.
NOT_IN_EQUATIONS = {("limits", "velocity"), ("limits", "effort")}


def test_every_number_has_a_function_that_depends_on_it():
    numbers = {
        (part, row.name) for part, table in FIELDS.items() for row in table
        if row.holds == "numbers" and row.seen
    }  # fmt: skip
    assert numbers == {*DEPENDS, *NOT_IN_EQUATIONS, *(("constraint", n) for n in OF_CONSTRAINTS)}


#: Every number of a constraint, and a kind whose residual depends on it.
OF_CONSTRAINTS = {
    "parent_placement": "fixed", "child_placement": "fixed", "axes": "revolute", "pitch": "helical",
    "length": "rod", "ratio": "gear", "offset": "gear",
}  # fmt: skip


@pytest.mark.parametrize("name", OF_CONSTRAINTS)
def test_every_number_of_a_constraint_changes_the_result_of_a_kernel(name, tmp_path, monkeypatch):
    monkeypatch.setenv("REMORA_CACHE", str(private(tmp_path)))
    robot, kind = made().replace(constraints=()), OF_CONSTRAINTS[name]
    ends = ("elbow", "left") if kind == "gear" else ("base", "left finger")
    options = {"length": 0.4} if kind == "rod" else {"axis": (0.0, 0.6, 0.8)}
    options = {} if kind in ("fixed", "gear") else options
    options |= {"pitch": 0.1} if kind == "helical" else {}
    robot = rm.loops.add_constraint(robot, "c", kind, *ends, **options)
    row = next(row for row in FIELDS["constraint"] if row.name == name)
    value = changed(getattr(robot.constraints["c"], name), row, None)
    value = rm.algebra.dual_quaternion.normalize(value) if row.shape == (8,) else value
    other = robot.replace_constraint("c", **{name: value})
    q, _ = rm.random_state(robot, 3)
    results = []
    for which in (robot, other, robot):
        results.append(rm.compile(rm.loops.constraint_residual, which)(q))
        np.testing.assert_allclose(results[-1], rm.loops.constraint_residual(which, q), atol=1e-9)
    assert np.array_equal(results[0], results[2])
    assert not np.allclose(results[0], results[1], rtol=1e-6, atol=1e-9)
    off = robot.with_active(off=["c"])
    assert rm.loops.constraint_residual(off, q).shape == (0,)
    assert key(off) != key(robot)


@pytest.mark.parametrize(("part", "name"), DEPENDS)
def test_every_number_changes_the_result_of_a_kernel(part, name, tmp_path, monkeypatch):
    """In memory and on disk: the kernel of one robot is never that of the other."""
    monkeypatch.setenv("REMORA_CACHE", str(private(tmp_path)))
    robot, function = made(), DEPENDS[part, name]
    row = next(row for row in FIELDS[part] if row.name == name)
    item, put = item_of(robot, part)
    value = changed(getattr(item, name), row, item)
    if name in ("placement", "axes"):  # of unit length still
        value = rm.algebra.dual_quaternion.normalize(value) if name == "placement" else value
    if name == "ratio" or name == "offset":
        value = float(value)
    other = put(dataclasses.replace(item, **{name: value}))
    q, v = rm.random_state(robot, 3)
    q[8:] = [0.5 if name == "upper" else -0.5, 0.4]
    given = {"q": q, "v": v}
    fixed = {"frame": "tool"} if function is rm.frame_pose else {}
    if function is rm.dynamics.stop_forces:
        fixed = {"stiffness": 100.0, "damping": 0.1}
    parameters = [n for n in ("q", "v") if n in inspect.signature(function).parameters]
    arrays = [given[n] for n in parameters]
    results = []
    for which in (robot, other, robot):
        compiled = rm.compile(function, which, fixed=fixed)
        expected = function(which, *arrays, **fixed)
        results.append(compiled(*arrays))
        np.testing.assert_allclose(results[-1], expected, rtol=1e-9, atol=1e-9)
        again = run_kernel(function, which, parameters, **fixed)(*arrays)
        assert np.array_equal(again, results[-1])
    assert np.array_equal(results[0], results[2])
    assert not np.allclose(results[0], results[1], rtol=1e-6, atol=1e-9)


def private(tmp_path):
    place = tmp_path / "kernels"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def test_fields_that_equations_do_not_see_change_no_result():
    robot = made()
    bare = robot.replace(bodies=[dataclasses.replace(b, geometry=()) for b in robot.bodies])
    bare = dataclasses.replace(bare, name="other", warnings=("a",))
    assert key(bare) == key(robot)
    q, v = rm.random_state(robot, 0)
    assert np.array_equal(rm.mass_matrix(bare, q), rm.mass_matrix(robot, q))
    assert np.array_equal(rm.bias_force(bare, q, v), rm.bias_force(robot, q, v))


def test_symbolic_robots_have_no_key_and_equal_only_themselves():
    robot = made()
    symbolic = robot.replace_body("arm", mass=casadi.SX.sym("m"))
    assert key(symbolic) is None
    itself = symbolic
    assert symbolic == itself
    assert symbolic != robot
    assert symbolic != robot.replace_body("arm", mass=casadi.SX.sym("m"))
    assert isinstance(hash(symbolic), int)


# Values compiled in -------------------------------------------------------------------------------

FIXED = {
    "frame": ["tool", "arm", Frame("tool", 1, np.eye(8)[0]), Frame("tool", 0, np.eye(8)[0])],
    "axes": ["body", "world"],
    "formulation": ["articulated", "composite"],
    "prescribed": [{"elbow": 1.0}, {"elbow": 2.0}, {"left": 1.0}],
    "slip_speed": [1e-3, 2e-3],
    "passive": [
        PassiveParameters(),
        *(PassiveParameters(**{n: 0.5}) for n in PassiveParameters._fields),
    ],
    "held": [(), ("elbow",), ("left",)],
}


def test_every_static_argument_is_tried():
    assert set(FIXED) >= STATIC


@pytest.mark.parametrize("name", FIXED)
def test_every_fixed_value_changes_the_key(name):
    keys = {key(made(), state_derivative, {name: value}) for value in FIXED[name]}
    assert None not in keys
    assert len(keys) == len(FIXED[name])


def test_names_shapes_parameters_and_functions_change_the_key():
    robot = made()
    keys = [
        key(robot), key(robot, rm.poses), key(robot, parameters=("mass",)),
        key(robot, parameters=("arm.mass",)),
        kernel_key(rm.mass_matrix, robot, [Signature("q", (9,))], {}),
        kernel_key(rm.mass_matrix, robot, [Signature("p", (8,))], {}),
    ]  # fmt: skip
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_functions_of_ones_own_have_no_key():
    assert key(made(), lambda robot, q: q) is None
    assert key(made(), functools.partial(rm.frame_pose, frame="tool")) is None


def test_arrays_compiled_in_are_told_apart_however_they_are_printed():
    one, other = np.ones(3), np.ones(3)
    other[0] += 1e-9
    with np.printoptions(precision=4):
        assert key(made(), fixed={"point": one}) != key(made(), fixed={"point": other})


def test_a_frame_as_target_is_known_by_its_placement():
    robot = made()
    q, _ = rm.random_state(robot, 1)
    fast = rm.compile(robot)
    for shift in (0.1, 0.2):
        x = rm.algebra.pose.from_translation(np.array([shift, 0.0, 0.0]))
        frame = Frame("tool", 1, x)
        expected = rm.frame_pose(robot, q, frame)
        np.testing.assert_allclose(fast.frame_pose(q, frame), expected, atol=1e-12)
        compiled = rm.compile(rm.frame_pose, robot, fixed={"frame": frame})
        np.testing.assert_allclose(compiled(q), expected, atol=1e-12)


def test_what_is_compiled_in_is_a_copy():
    robot = made()
    q, v = rm.random_state(robot, 1)
    prescribed = {"elbow": np.array([1.0])}
    fixed = {"prescribed": prescribed}
    compiled = rm.compile(rm.hybrid_dynamics, robot, fixed=fixed | {"formulation": "composite"})
    before = compiled(q, v, np.ones(robot.nv))
    prescribed["elbow"][0] = 7.0
    slope = compiled.jacobian("tau")(q, v, np.ones(robot.nv))
    assert np.isfinite(slope).all()
    assert np.array_equal(compiled.graph.content(), compiled.graph.content())
    assert np.array_equal(compiled(q, v, np.ones(robot.nv))[0], before[0])


# Rows of tables -----------------------------------------------------------------------------------


def scaled(factor):
    original = rm.dynamics.FORMULATIONS["composite"].hybrid

    def hybrid(*arguments):
        vdot, tau = original(*arguments)
        return factor * vdot, tau

    return Formulation(hybrid, None)


@pytest.mark.parametrize("name", ["mine", "articulated"])
def test_a_replaced_formulation_is_another_kernel(name, monkeypatch, tmp_path):
    monkeypatch.setenv("REMORA_CACHE", str(private(tmp_path)))
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 1)
    tau = np.ones(robot.nv)
    fast = rm.compile(robot)
    choice = {} if name == "articulated" else {"formulation": name}
    plain = rm.forward_dynamics(robot, q, v, tau, formulation="composite")
    for factor in (2.0, 3.0):
        monkeypatch.setitem(rm.dynamics.FORMULATIONS, name, scaled(factor))
        for _ in range(2):
            got = fast.forward_dynamics(q, v, tau, **choice)
            np.testing.assert_allclose(got, factor * plain, rtol=1e-9, atol=1e-9)
        compiled = rm.compile(rm.forward_dynamics, robot, fixed=choice)
        np.testing.assert_allclose(compiled(q, v, tau), factor * plain, rtol=1e-9, atol=1e-9)
    monkeypatch.undo()
    np.testing.assert_allclose(fast.forward_dynamics(q, v, tau), plain, rtol=1e-9, atol=1e-9)


def test_a_replaced_formulation_counts_for_large_robots_too(monkeypatch):
    robot = rm.random_robot(1, bodies=70)
    q, v = rm.random_state(robot, 1)
    tau = np.ones(robot.nv)
    assert rm.compile(rm.forward_dynamics, robot).rolled
    monkeypatch.setitem(
        rm.dynamics.FORMULATIONS,
        "articulated",
        Formulation(lambda robot, s: (0 * s.tau, s.tau), None),
    )
    assert np.array_equal(rm.compile(rm.forward_dynamics, robot)(q, v, tau), 0.0 * tau)


def test_a_replaced_joint_type_is_another_kernel(monkeypatch):
    robot = rm.load("vt18_satellite")
    q, _ = rm.random_state(robot, 1)
    fast = rm.compile(robot)
    before = fast.poses(q)
    row = rm.JOINT_TYPES["revolute"]
    monkeypatch.setitem(
        rm.JOINT_TYPES, "revolute", dataclasses.replace(row, pose=lambda j, q: row.pose(j, 2.0 * q))
    )
    np.testing.assert_allclose(fast.poses(q), rm.poses(robot, q), atol=1e-12)
    assert not np.allclose(fast.poses(q), before)


FACTOR = 1.0


def by_factor(*arguments):
    vdot, tau = rm.dynamics.FORMULATIONS["composite"].hybrid(*arguments)
    return FACTOR * vdot, tau


def test_a_row_whose_global_changed_is_another_kernel(monkeypatch, tmp_path):
    monkeypatch.setenv("REMORA_CACHE", str(private(tmp_path)))
    monkeypatch.setitem(rm.dynamics.FORMULATIONS, "mine", Formulation(by_factor, None))
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 1)
    tau, given = np.ones(robot.nv), {"formulation": "mine"}

    def ends():
        run = rm.simulate(
            robot, q, v, 1.0, torque=tau, record=1.0, physics=rm.Physics(formulation="mine")
        )
        return rm.compile(rm.forward_dynamics, robot, fixed=given)(q, v, tau), run.v[-1]

    once = rm.compile(rm.forward_dynamics, robot, fixed=given)
    once, (before, first) = rm.compile(rm.forward_dynamics, robot, fixed=given), ends()
    monkeypatch.setitem(globals(), "FACTOR", 3.0)  # no table changes
    after, second = ends()
    np.testing.assert_allclose(after, 3.0 * before, rtol=1e-12)
    assert not np.allclose(first, second)
    with pytest.raises(rm.RemoraError, match="replaced after forward_dynamics was compiled"):
        once.jacobian("tau")  # its graph would be another than its code
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    assert np.array_equal(ends()[0], before)


def test_a_graph_is_not_traced_with_other_rows_than_the_code(monkeypatch):
    robot = rm.load("vt18_satellite")
    compiled = rm.compile(rm.forward_dynamics, robot)
    compiled = rm.compile(rm.forward_dynamics, robot)  # from the cache: nothing traced yet
    monkeypatch.setitem(
        rm.dynamics.FORMULATIONS, "articulated", rm.dynamics.FORMULATIONS["composite"]
    )
    with pytest.raises(rm.RemoraError, match="replaced after forward_dynamics was compiled"):
        compiled.jacobian("tau")


# The cache on disk --------------------------------------------------------------------------------


def test_swapped_entries_are_not_run(monkeypatch, tmp_path):
    place = private(tmp_path)
    monkeypatch.setenv("REMORA_CACHE", str(place))
    robot = rm.load("vt18_satellite")
    other = robot.replace_body("body_2", mass=9.0)
    q, _ = rm.random_state(robot, 1)
    made = []
    for which in (robot, other):
        rm.compile(rm.mass_matrix, which)
        made.append({*place.iterdir()}.difference(*made))
    assert len(made[0]) == len(made[1]) == 3  # its source and two pieces of code
    contents = [[f.read_bytes() for f in files] for files in made]
    for shift in range(3):  # each entry takes the place of each of the other kernel
        for files, others in zip(made, reversed(contents), strict=True):
            for k, file in enumerate(files):
                file.write_bytes(others[(k + shift) % 3])
        compared(q, robot, other)


def compared(q, *robots):
    """Compare compiled and uncompiled mass matrices, alone and in a batch."""
    for which in robots:
        kernel, expected = rm.compile(rm.mass_matrix, which), rm.mass_matrix(which, q)
        np.testing.assert_allclose(kernel(q), expected, rtol=1e-12)
        np.testing.assert_allclose(kernel(np.tile(q, (9, 1)))[8], expected, rtol=1e-12)


def test_an_entry_under_another_key_is_refused(monkeypatch, tmp_path):
    place = private(tmp_path)
    monkeypatch.setenv("REMORA_CACHE", str(place))
    a, b = "a" * 64, "b" * 64
    kernel_cache.save(a, b"code")
    assert kernel_cache.load(a) == b"code"
    shutil.copy(place / a, place / b)
    assert kernel_cache.load(b) is None
    data = bytearray((place / a).read_bytes())
    for k in range(len(data)):  # every single byte counts
        spoilt = bytearray(data)
        spoilt[k] ^= 1
        assert kernel_cache.unpacked_entry(a, bytes(spoilt)) is None
        assert kernel_cache.unpacked_entry(a, bytes(data[:k])) is None


def test_entries_of_the_old_format_are_not_read():
    import hashlib

    old = b"remora kernel 1\n" + hashlib.sha256(b"code").digest() + b"code"
    assert kernel_cache.unpacked_entry("a" * 64, old) is None


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_with_a_group_umask_the_cache_is_private_and_used(monkeypatch, tmp_path):
    monkeypatch.setenv("REMORA_CACHE", str(tmp_path / "a" / "b" / "kernels"))
    before = os.umask(0o002)
    try:
        kernel_cache.save("a" * 64, b"code")
    finally:
        os.umask(before)
    assert kernel_cache.load("a" * 64) == b"code"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_cache_that_others_can_write_to_is_reported_once(monkeypatch, tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o775)
    monkeypatch.setenv("REMORA_CACHE", str(place / "kernels"))
    with pytest.warns(RuntimeWarning, match=r"others can write to .*open.*REMORA_CACHE"):
        kernel_cache.save("a" * 64, b"code")
    kernel_cache.save("a" * 64, b"code")  # not again
    assert kernel_cache.load("a" * 64) is None


def test_every_function_of_a_compiled_robot_has_a_key():
    robot = rm.load("vt18_satellite")
    for function in FUNCTIONS.values():
        assert kernel_key(function, robot, [], {}) is not None


def test_runs_of_robots_that_differ_in_a_limit_differ():
    """A mass on a slide that is thrown against a stop: each robot meets its own."""

    def slide(upper):
        b = rm.Builder("slide")
        b.body("mass", mass=1.0, com=(0, 0, 0), inertia=(1.0, 1.0, 1.0))
        b.joint("slide", "prismatic", None, "mass", axis=(1, 0, 0), lower=-100.0, upper=upper)
        return b.build()

    for upper in (0.3, 0.6, 0.3):
        robot = slide(upper)
        run = rm.simulate(
            robot,
            [0.0],
            [1.0],
            duration=1.0,
            physics=rm.Physics(stops=(1e4, 0.0)),
            record=rm.Record(progress=False),
        )
        batch = rm.simulate_batch(
            robot,
            [[0.0]],
            [[1.0]],
            1.0,
            integrator=rm.Integrator(step=1e-4),
            physics=rm.Physics(stops=(1e4, 0.0)),
            record=rm.Record(progress=False),
        )
        # it is at the stop at t = upper, touches it for half a period, and comes back as fast
        expected = upper - (1.0 - upper - np.pi / 100.0)
        np.testing.assert_allclose(run.q[-1], expected, atol=1e-6)
        np.testing.assert_allclose(batch.q[0, -1], expected, atol=1e-5)
