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
