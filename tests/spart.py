"""SPART's reference robots in Remora, and quantities turned into SPART's conventions.

SPART's link frame is the URDF `<inertial>` frame; here it is rebuilt from the file as a Remora
frame on the body that carries the link, so that even merged links are compared.
"""

import json
import xml.etree.ElementTree as ET

import numpy as np

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw, vector

ROBOTS = ["sc_3dof", "sc_kuka_lwr", "dual_iiwa"]


def inertial_placements(path):
    """Pose of each link's `<inertial>` frame in the link's frame."""
    placements = {}
    for link in ET.parse(path).getroot().findall("link"):
        origin = link.find("inertial/origin")
        given = {} if origin is None else origin.attrib
        xyz, rpy = ([float(t) for t in given.get(key, "0 0 0").split()] for key in ("xyz", "rpy"))
        placements[link.get("name")] = pose.from_xyz_rpy(xyz, rpy)
    return placements


class Reference:
    def __init__(self, folder, name):
        path = folder / f"{name}.urdf"
        self.data = json.loads((folder / f"{name}.json").read_text())
        self.robot = rm.load(path)
        placements = inertial_placements(path)
        ids = self.data["robot"]["link_id"]
        names = sorted((n for n in ids if ids[n] > 0), key=ids.get)
        base = min(ids, key=ids.get)
        self.base = self.com_frame(base, placements)
        self.links = [self.com_frame(n, placements) for n in names]
        self.layout = rm.layouts.spart(self.robot)

    def com_frame(self, link, placements):
        frame = self.robot.frame(link)
        return rm.Frame(link, frame.body, dq.mul(frame.placement, placements[link]))

    def state(self, k):
        given = {
            key: np.array(value, dtype=float)
            for key, value in self.data["states"][k]["inputs"].items()
        }
        there = np.concatenate([given["r0"], given["base_quat_xyzw"], given["qm"]])
        q = self.layout.q_from(there)
        v = self.layout.v_from(q, np.concatenate([given["u0"], given["um"]]))
        vdot = self.layout.vdot_from(q, v, np.concatenate([given["u0dot"], given["umdot"]]))
        return q, v, vdot


class Unmerged:
    """A reference robot whose fixed links stay bodies, in SPART's order."""

    def __init__(self, folder, name):
        path = folder / f"{name}.urdf"
        self.data = json.loads((folder / f"{name}.json").read_text())
        self.robot = rm.load(path, merge_fixed=False)
        self.layout = rm.layouts.spart(self.robot)
        ids = self.data["robot"]["link_id"]
        numbered = {name: n for n, name in enumerate(sorted(ids, key=ids.get))}
        #: of every body of ours SPART's number, base 0; a massless link is none of ours
        self.numbers = [numbered[body.name] for body in self.robot.bodies]
        #: the massless links: which body of ours bears them, and SPART's number
        self.massless = [
            (self.robot.frame(name).body, n)
            for name, n in numbered.items()
            if n not in self.numbers
        ]

    def state(self, k):
        given = {n: np.array(x, dtype=float) for n, x in self.data["states"][k]["inputs"].items()}
        there = np.concatenate([given["r0"], given["base_quat_xyzw"], given["qm"]])
        q = self.layout.q_from(there)
        return q, self.layout.v_from(q, np.concatenate([given["u0"], given["um"]]))

    def rows(self, N):
        """Return the rows of our bodies out of SPART's N, `(6 n, nv)`."""
        return np.concatenate([np.array(N)[6 * n : 6 * n + 6] for n in self.numbers])


def in_inertial_axes(x, s):
    """Turn a screw in the frame x into inertial axes, about the same origin."""
    return screw.adjoint(pose.from_quaternion(x[..., :4]), s)


def twist_rate_in_inertial_axes(x, xi, a):
    """SPART's ṫ = [ω̇, r̈] from the rate of body components: v̇ + ω × v, turned."""
    acceleration = np.concatenate([a[:3], a[3:] + np.cross(xi[:3], xi[3:])])
    return in_inertial_axes(x, acceleration)


def as_inertial_jacobian(x, J):
    return vector.transpose(in_inertial_axes(x, vector.transpose(J)))


def speeds_from_spart(ref, q):
    """The matrix with v = B u, column by column."""
    return np.stack([ref.layout.v_from(q, e) for e in np.eye(ref.robot.nv)], axis=-1)


def jacobian_in_spart_speeds(ref, q, frame, point=(0, 0, 0)):
    x = rm.frame_pose(ref.robot, q, frame)
    J = rm.jacobian(ref.robot, q, frame, point)
    return as_inertial_jacobian(x, J) @ speeds_from_spart(ref, q)


def jacobian_rate_in_spart_speeds(ref, q, v, frame, point=(0, 0, 0)):
    """d/dt of the Jacobian above, by exact rules: turning axes, J̇, and the rate of B."""
    robot = ref.robot
    x = rm.frame_pose(robot, q, frame)
    J, J_rate = (
        rm.jacobian(robot, q, frame, point),
        rm.dynamics.jacobian_rate(robot, q, v, frame, point),
    )
    omega = (J @ v)[:3]
    turning = np.kron(np.eye(2), vector.skew(omega))
    rate_in_axes = as_inertial_jacobian(x, J_rate + turning @ J)
    B = speeds_from_spart(ref, q)
    # the base's v = Rᵀ ṙ - ω × c is the only part of B that changes, by Ṙᵀ = -[ω]× Rᵀ
    B_rate = np.zeros_like(B)
    R = pose.to_rotation_matrix(q[:8])
    B_rate[3:6, 3:6] = -vector.skew(v[:3]) @ R.T
    return rate_in_axes @ B + as_inertial_jacobian(x, J) @ B_rate
