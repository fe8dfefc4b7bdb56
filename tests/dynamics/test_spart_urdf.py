"""States, H, C u and u̇ of SPART's conventions for URDF files of any kind, by other code.

Every link has an oblique `<inertial>` frame and a full inertia, and the arms branch.
"""

import numpy as np
import pytest

import remora as rm
import spart_again
from numeric import assert_close
from remora.algebra import pose
from remora.errors import InvalidValue

KINDS = {
    "a1": ("bus", "revolute"),
    "a2": ("a1", "prismatic"),
    "b1": ("bus", "continuous"),
    "b2": ("b1", "revolute"),
    "b3": ("b1", "prismatic"),
}
VARIANTS = {
    "plain": {},
    "tool": {"grip": "a2"},
    "base": {"tank": "bus"},
    "base and tool": {"tank": "bus", "grip": "b2", "tip": "b3"},
}


def numbers(rng, size=0.6):
    return " ".join(repr(float(x)) for x in rng.uniform(-size, size, 3))


def link(rng, name, mass):
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    I = 0.05 * mass * Q @ np.diag(rng.uniform(1, 1.8, 3)) @ Q.T
    moments = " ".join(
        f'i{a}{b}="{float(I[i, j])!r}"'
        for (i, a), (j, b) in (
            ((0, "x"), (0, "x")), ((0, "x"), (1, "y")), ((0, "x"), (2, "z")),
            ((1, "y"), (1, "y")), ((1, "y"), (2, "z")), ((2, "z"), (2, "z")),
        )
    )  # fmt: skip
    origin = f'<origin xyz="{numbers(rng, 0.2)}" rpy="{numbers(rng, 0.8)}"/>'
    inertial = f'<inertial>{origin}<mass value="{mass}"/><inertia {moments}/></inertial>'
    return f'<link name="{name}">{inertial}</link>'


def joint(rng, name, kind, parent, child):
    limit = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'
    more = "" if kind == "fixed" else f'<axis xyz="{numbers(rng)}"/>{limit}'
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    placed = f'<origin xyz="{numbers(rng)}" rpy="{numbers(rng, 1.5)}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{placed}{more}</joint>'


def urdf(seed, bolted=(), root=False):
    """A bus with two arms; `bolted` are fixed links, `root` a massless link below the bus."""
    rng = np.random.default_rng(seed)
    parts = [link(rng, "bus", 60.0)]
    parts += [link(rng, name, float(rng.uniform(1, 6))) for name in KINDS]
    joints = [joint(rng, f"to_{c}", kind, p, c) for c, (p, kind) in KINDS.items()]
    for name, carrier in dict(bolted).items():
        parts.append('<link name="tip"/>' if name == "tip" else link(rng, name, 3.0))
        joints.append(joint(rng, f"to_{name}", "fixed", carrier, name))
    if root:
        parts.append('<link name="root"/>')
        joints.append(joint(rng, "to_bus", "fixed", "root", "bus"))
    rng.shuffle(joints)  # SPART numbers depth-first
    return f'<robot name="x">{"".join(parts + joints)}</robot>'


class Ported:
    """A robot and a state of it, in both conventions."""

    def __init__(self, folder, text, merge, seed=0):
        (folder / "robot.urdf").write_text(text, encoding="utf-8")
        self.robot = rm.load(folder / "robot.urdf", merge_fixed=merge)
        self.tree = spart_again.Tree(text)
        self.rng = rng = np.random.default_rng(seed)
        self.R0, self.r0 = spart_again.rpy_matrix(rng.normal(size=3)), rng.normal(size=3)
        self.qm, self.u = 0.5 * rng.normal(size=self.tree.n), rng.normal(size=6 + self.tree.n)
        self.layout = rm.layouts.spart(self.robot)
        xyzw = np.roll(pose.from_rotation_matrix(self.R0)[:4], -1)
        self.q = self.layout.q_from(np.concatenate([self.r0, xyzw, self.qm]))
        self.v = self.layout.v_from(self.q, self.u)

    @property
    def at(self):
        return self.tree, self.R0, self.r0, self.qm


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("merge", [False, True])
def test_the_migrated_state_has_sparts_dynamics(variant, root, merge, tmp_path):
    p = Ported(tmp_path, urdf(3, VARIANTS[variant], root), merge)
    robot, layout, q, v = p.robot, p.layout, p.q, p.v
    H = spart_again.inertia(*p.at)
    B = np.stack([layout.v_from(q, e) for e in np.eye(robot.nv)], axis=-1)
    assert_close(B.T @ rm.mass_matrix(robot, q) @ B, H)
    where = spart_again.kinematics(*p.at)
    masses = np.array([link.mass for link in p.tree.links])
    assert_close(rm.center_of_mass(robot, q), masses @ np.array(where.rL) / masses.sum())
    tau = p.rng.normal(size=robot.nv)
    udot = layout.vdot_to(q, v, rm.forward_dynamics(robot, q, v, layout.tau_from(q, tau)))
    assert_close(udot, np.linalg.solve(H, tau - spart_again.bias(*p.at, p.u)), rtol=1e-11)
    if merge and (variant != "plain" or root):
        with pytest.raises(InvalidValue, match=r"merged into body '\w+'.*merge_fixed=False"):
            rm.papers.spart17.generalized_inertia(robot, q)
        return
    found = rm.papers.spart17.generalized_inertia(robot, q)
    blocks = (H[:6, :6], H[:6, 6:], H[6:, :6], H[6:, 6:])
    for block, expected in zip(found, blocks, strict=True):
        assert_close(block, expected)
    C = np.block([[(c := rm.papers.spart17.convective_inertia(robot, q, v))[0], c[1]], [*c[2:]]])
    assert_close(C @ p.u, spart_again.bias(*p.at, p.u), rtol=1e-11)
    # the floating robot at rest: u0 = -H0⁻¹ H0m um
    um = p.u[6:]
    u = np.concatenate([-np.linalg.solve(H[:6, :6], H[:6, 6:] @ um), um])
    bias = spart_again.bias(*p.at, u)
    needed = bias[6:] - H[6:, :6] @ np.linalg.solve(H[:6, :6], bias[:6])
    assert_close(rm.papers.spart17.floating_convective_inertia(robot, q, um) @ um, needed, 1e-11)


def test_the_inertial_frame_follows_the_centre_of_mass(tmp_path):
    """A bus whose centre of mass is replaced has SPART's base frame there; not a merged one."""
    text = urdf(1, {"tank": "bus"})
    apart = Ported(tmp_path, text, merge=False)
    frame = apart.robot.bodies[0].inertial_placement
    moved = apart.robot.replace_body("bus", com=(0.1, 0.2, 0.3))
    r0 = rm.layouts.spart(moved).q_to(apart.q)[:3]
    assert_close(r0, pose.transform_point(apart.q[:8], np.array([0.1, 0.2, 0.3])))
    assert_close(moved.bodies[0].inertial_placement[:4], frame[:4])
    merged = Ported(tmp_path, text, merge=True).robot
    moved = merged.replace_body("bus", com=(0.1, 0.2, 0.3))
    assert_close(moved.bodies[0].inertial_placement, frame)


# The toolkit's calls ---------------------------------------------------------------------------

SPART = rm.papers.spart17


@pytest.mark.parametrize("variant", ["plain", "tool", "base"])
@pytest.mark.parametrize("root", [False, True])
def test_the_calls_of_the_toolkit(variant, root, tmp_path):
    p = Ported(tmp_path, urdf(5, VARIANTS[variant], root), merge=False, seed=4)
    robot, tree, n = p.robot, p.tree, p.tree.n
    q, v = SPART.state(robot, p.R0, p.r0, p.qm, p.u[:6], p.u[6:])
    assert_close(q, p.q)
    assert_close(v, p.v)
    where = spart_again.kinematics(*p.at)
    found = SPART.kinematics(robot, q)
    assert_close(found.RL, where.RL[1:])
    assert_close(found.rL, where.rL[1:])
    for ours, theirs in zip(found, (where.RJ, None, where.rJ, None, where.e, where.g), strict=True):
        if theirs is not None:
            assert_close(ours, theirs)
    t0, tL = SPART.velocities(robot, q, v)
    twists = [J @ p.u for J in spart_again.link_jacobians(tree, where)]
    assert_close(t0, twists[0])
    assert_close(tL, twists[1:])
    for i, name in enumerate(tree.names):
        point = where.rL[i] + p.rng.normal(size=3)
        J = np.concatenate(SPART.jacobians(robot, q, point, name), axis=-1)
        assert_close(J, spart_again.jacobian_of_point(tree, where, i, point))
    M0, Mm = SPART.composite_body_masses(robot, q)
    H = spart_again.inertia(*p.at)
    P0 = np.kron(np.eye(2), np.eye(3))
    P0[:3, :3] = p.R0
    assert_close(P0.T @ M0 @ P0, H[:6, :6])
    for joint, e, g, M in zip(tree.joints, where.e, where.g, Mm, strict=True):
        if joint.column >= 0:
            arm = np.zeros(3), e
            screw = arm if joint.kind == "prismatic" else (e, np.cross(e, g))
            column = np.concatenate(screw)
            assert_close(column @ M @ column, H[6 + joint.column, 6 + joint.column])
    check_dynamics(p, q, v, H, where, n)


def check_dynamics(p, q, v, H, where, n):
    """FD, ID and Floating_ID against H q̈ + C q̇ = τ + Nᵀ w."""
    robot, tree, rng = p.robot, p.tree, p.rng
    bias = spart_again.bias(*p.at, p.u)
    tau, udot = rng.normal(size=6 + n), rng.normal(size=6 + n)
    w = rng.normal(size=(len(tree.links), 6))
    felt = spart_again.loads(tree, where, w)
    free = np.linalg.solve(H, tau - bias)
    loaded = np.linalg.solve(H, tau + felt - bias)
    for wrenches, expected in (((), free), ((w[0], w[1:]), loaded)):
        found = SPART.flying_forward_dynamics(robot, q, v, tau[:6], tau[6:], *wrenches)
        assert_close(np.concatenate(found), expected, rtol=1e-11)
    found = SPART.flying_inverse_dynamics(robot, q, v, udot[:6], udot[6:], w[0], w[1:])
    assert_close(np.concatenate(found), H @ udot + bias - felt, rtol=1e-11)
    taum, u0dot = SPART.floating_base_inverse_dynamics(robot, q, v, udot[6:], w[0], w[1:])
    on_base = np.linalg.solve(H[:6, :6], (felt - bias)[:6] - H[:6, 6:] @ udot[6:])
    assert_close(u0dot, on_base, rtol=1e-11)
    both = np.concatenate([on_base, udot[6:]])
    assert_close(taum, (H @ both + bias - felt)[6:], rtol=1e-11)


def test_calls_of_merged_robots_and_of_batches(tmp_path):
    """Dynamics does not depend on whether links were merged; many states are one call."""
    text = urdf(6, VARIANTS["base and tool"])
    apart, merged = (Ported(tmp_path, text, merge, seed=2) for merge in (False, True))
    tau = apart.rng.normal(size=6 + apart.tree.n)
    one, other = (
        SPART.flying_forward_dynamics(p.robot, p.q, p.v, tau[:6], tau[6:]) for p in (apart, merged)
    )
    assert_close(np.concatenate(one), np.concatenate(other), rtol=1e-11)
    robot, nb = apart.robot, len(apart.robot.bodies)
    q, v = rm.random_state(robot, 1, (2, 3))
    w = apart.rng.normal(size=(2, 3, nb, 6))
    calls = (
        lambda k: SPART.kinematics(robot, q[k]),
        lambda k: SPART.velocities(robot, q[k], v[k]),
        lambda k: SPART.jacobians(robot, q[k], w[k][..., 0, :3], 2),
        lambda k: SPART.composite_body_masses(robot, q[k]),
        lambda k: SPART.flying_forward_dynamics(
            robot, q[k], v[k], v[k][..., :6], v[k][..., 6:], w[k][..., 0, :], w[k][..., 1:, :]
        ),
        lambda k: SPART.flying_inverse_dynamics(robot, q[k], v[k], v[k][..., :6], v[k][..., 6:]),
        lambda k: SPART.floating_base_inverse_dynamics(robot, q[k], v[k], v[k][..., 6:]),
    )
    for call in calls:
        for many, single in zip(call(...), call((1, 2)), strict=True):
            assert many.shape == (2, 3, *single.shape)
            assert_close(many[1, 2], single, rtol=1e-11)
    lone = rm.Builder().body("bus", 3.0, (0.1, 0, 0), (1, 2, 3)).joint("b", "free", None, "bus")
    lone = lone.build()
    found = SPART.kinematics(lone, rm.neutral(lone))
    assert [x.shape for x in found] == [(0, 3, 3), (0, 3, 3), (0, 3), (0, 3), (0, 3), (0, 3)]
    with pytest.raises(rm.errors.ShapeError, match="tau0 must have shape"):
        SPART.flying_forward_dynamics(robot, q, v, tau[6:], tau[6:])
