"""Subsystems written by hand, against which assemblies of robots are compared."""

from types import SimpleNamespace

import numpy as np

import remora as rm
from remora.algebra import screw, vector


class WheelBody:
    """A rigid body with a reaction wheel about its z axis, and a point `tip` fixed to it.

    The wheel's centre is the origin; `inertia` about the origin contains the locked wheel.
    """

    nq, nv, points = 1, 1, ("tip",)

    def __init__(self, mass=3.0, com=(0.1, -0.2, 0.3), spin=0.05, tip=(0.4, 0.0, 0.2)):
        self.mass, self.com, self.spin = mass, np.array(com), spin
        self.about_com = np.diag([0.4, 0.5, 0.6])
        self.axis = np.array([0.0, 0.0, 1.0])
        self.tip = rm.algebra.pose.from_translation(np.array(tip))

    @property
    def body(self):
        return screw.inertia(np.array(self.mass), self.com, self.about_com)

    def robot(self):
        """The same as a robot: a fixed body and a wheel without mass of its own in it."""
        wheel = np.diag([1e-9, 1e-9, 1.0]) * self.spin
        wheel[0, 0] = wheel[1, 1] = 0.5 * self.spin
        mass = 0.5
        about_com = self.about_com + self._steiner(self.mass, self.com)
        rest_mass = self.mass - mass
        com = self.mass * self.com / rest_mass
        rest = about_com - wheel - self._steiner(rest_mass, com)
        b = rm.Builder("wheel body")
        b.body("housing", rest_mass, com, rest)
        b.body("wheel", mass, (0, 0, 0), wheel)
        b.joint("mount", "fixed", None, "housing")
        b.joint("spin", "revolute", "housing", "wheel", axis=(0, 0, 1))
        b.frame("tip", "housing", self.tip)
        return b.build()

    @staticmethod
    def _steiner(m, c):
        S = vector.skew(c)
        return -m * S @ S

    def point_motions(self, base, q, v, vdot):
        return {"tip": rm.dynamics.BodyMotion(*(screw.adjoint_inverse(self.tip, x) for x in base))}

    def _bias(self, twist, v):
        momentum = screw.momentum(self.body, twist)
        wheel = np.zeros((*np.broadcast_shapes(twist.shape[:-1], v.shape[:-1]), 6))
        wheel[..., 5] = self.spin * v[..., 0]
        return screw.cross(twist, momentum + wheel)

    def inverse_dynamics(self, base, q, v, vdot, loads):
        W = screw.momentum(self.body, base.rate) + self._bias(base.twist, v)
        spun = np.zeros((*vdot.shape[:-1], 6))
        spun[..., 5] = self.spin * vdot[..., 0]
        W = W + spun + screw.adjoint(self.tip, loads["tip"])
        tau = self.spin * (base.rate[..., 2:3] + vdot)
        return rm.papers.sa24.SubsystemLoads(W, tau)

    def point_twists(self, base, q, v):
        return {"tip": screw.adjoint_inverse(self.tip, base)}

    def articulated(self, base, q, v, tau, loads):
        A = self.body.about_origin - self.spin * np.outer(self.axis, self.axis)
        p = self._bias(base, v)
        p = p + np.concatenate([np.zeros_like(p[..., :5]), tau], axis=-1)
        own = rm.dynamics.ArticulatedBody(
            A, vector.skew(self.body.moment), self.mass * np.eye(3), p
        )
        more = loads["tip"]
        X = screw.adjoint_matrix(self.tip)
        full = np.block([[more.A, more.B], [np.swapaxes(more.B, -1, -2), more.C]])
        inner = np.linalg.inv(X)  # twists of the base to those of the tip
        moved = np.swapaxes(inner, -1, -2) @ full @ inner
        return rm.dynamics.ArticulatedBody(
            own.A + moved[..., :3, :3], own.B + moved[..., :3, 3:], own.C + moved[..., 3:, 3:],
            own.p + screw.adjoint(self.tip, more.p),
        )  # fmt: skip

    def accelerations(self, base, q, v, tau, loads):
        vdot = tau / self.spin - base.rate[..., 2:3]
        return rm.papers.sa24.SubsystemAccelerations(
            vdot, {"tip": screw.adjoint_inverse(self.tip, base.rate)}
        )


def arm(name="arm", gravity=(0.0, 0.0, 0.0), axes=((0, 0, 1), (0, 1, 0)), tip=(0.0, 0.0, 0.5)):
    """A serial arm of revolute joints with a frame `tip` and one fixed to its base, `foot`."""
    b = rm.Builder(name, gravity=gravity)
    for k, axis in enumerate(axes):
        b.body(f"link{k}", 1.0 + k, (0.0, 0.1, 0.2), np.diag([0.2, 0.3, 0.25]))
        place = rm.algebra.pose.from_translation(np.array([0.0, 0.0, 0.4 * (k > 0)]))
        b.joint(f"joint{k}", "revolute", f"link{k - 1}" if k else None, f"link{k}", axis=axis,
                placement=place)  # fmt: skip
    b.frame("tip", f"link{len(axes) - 1}", rm.algebra.pose.from_translation(np.array(tip)))
    return b.build()


def cut(case, fraction=None):
    """A random robot's case cut at random joints, with its arguments in the assembly's order."""
    robot, rng = case.robot, np.random.default_rng(case.rng.integers(2**31))
    able = [joint.name for joint in robot.joints if joint.parent >= 0]
    count = int(rng.integers(0, len(able) + 1)) if fraction is None else int(fraction * len(able))
    split = rm.papers.sa24.split_robot(robot, [able[k] for k in rng.permutation(len(able))[:count]])
    return split, SimpleNamespace(
        q=case.q[split.q], v=case.v[split.v], vdot=case.vdot[split.v], tau=case.tau[split.v],
        wrenches=case.wrenches[split.bodies],
    )  # fmt: skip
