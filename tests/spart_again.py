"""SPART17's equations once more, in NumPy, from the URDF text: a second witness for the tests.

Nothing of Remora is used. Links keep their fixed joints and are numbered depth-first; link frames
are the `<inertial>` frames; twists [ω; ṙ], wrenches [torque; force], inertial axes.
"""

import xml.etree.ElementTree as ET
from typing import NamedTuple

import numpy as np


def rpy_matrix(rpy):
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return z @ y @ x


def turn(axis, angle):
    K = skew(axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def skew(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def _floats(element, key, default):
    return np.array([float(t) for t in element.get(key, default).split()])


def _origin(element):
    origin = element.find("origin") if element is not None else None
    if origin is None:
        return np.eye(3), np.zeros(3)
    return rpy_matrix(_floats(origin, "rpy", "0 0 0")), _floats(origin, "xyz", "0 0 0")


class UrdfLink(NamedTuple):
    name: str
    mass: float
    inertia: np.ndarray  # in the axes of the inertial frame
    R: np.ndarray  # the inertial frame in the link frame
    c: np.ndarray


class UrdfJoint(NamedTuple):
    kind: str
    parent: int
    R: np.ndarray
    p: np.ndarray
    axis: np.ndarray
    column: int  # of um; -1: fixed


class Tree:
    """The links and joints of a URDF text; joint i carries link i + 1."""

    def __init__(self, text):
        root = ET.fromstring(text)
        links = {link.get("name"): link for link in root.findall("link")}
        joints = root.findall("joint")
        children = {joint.find("child").get("link") for joint in joints}
        (base,) = (name for name in links if name not in children)
        self.links = [self._link(links[base])]
        self.joints = []
        self.n = 0
        self._branch(base, 0, links, joints)
        self.names = [link.name for link in self.links]

    @staticmethod
    def _link(link):
        inertial = link.find("inertial")
        R, c = _origin(inertial)
        mass, inertia = 0.0, np.zeros((3, 3))
        if inertial is not None:
            mass = float(inertial.find("mass").get("value"))
            moments = inertial.find("inertia")
            xx, xy, xz, yy, yz, zz = (
                float(moments.get(k)) for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            )
            inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return UrdfLink(link.get("name"), mass, inertia, R, c)

    def _branch(self, name, number, links, joints):
        for joint in joints:
            if joint.find("parent").get("link") != name:
                continue
            kind, column = joint.get("type"), -1
            axis = np.array([1.0, 0, 0])
            if joint.find("axis") is not None:
                axis = _floats(joint.find("axis"), "xyz", "1 0 0")
                axis = axis / np.linalg.norm(axis)
            if kind != "fixed":
                column, self.n = self.n, self.n + 1
            child = joint.find("child").get("link")
            self.joints.append(UrdfJoint(kind, number, *_origin(joint), axis, column))
            self.links.append(self._link(links[child]))
            self._branch(child, len(self.links) - 1, links, joints)


class Pose(NamedTuple):
    """What SPART's Kinematics returns, link 0 first in RL, rL."""

    RJ: list
    RL: list
    rJ: list
    rL: list
    e: list
    g: list


def kinematics(tree, R0, r0, qm):
    at = tree.links[0]
    # the link frame of the base from its inertial frame
    R_link = [R0 @ at.R.T]
    p_link = [r0 - R_link[0] @ at.c]
    out = Pose([], [R0], [], [np.array(r0, float)], [], [])
    for joint, link in zip(tree.joints, tree.links[1:], strict=True):
        R = R_link[joint.parent] @ joint.R
        p = p_link[joint.parent] + R_link[joint.parent] @ joint.p
        out.RJ.append(R)
        out.rJ.append(p)
        out.e.append(R @ joint.axis if joint.column >= 0 else np.zeros(3))
        if joint.kind in ("revolute", "continuous"):
            R = R @ turn(joint.axis, qm[joint.column])
        elif joint.kind == "prismatic":
            p = p + R @ joint.axis * qm[joint.column]
        R_link.append(R)
        p_link.append(p)
        out.RL.append(R @ link.R)
        out.rL.append(p + R @ link.c)
        out.g.append(out.rL[-1] - out.rJ[-1])
    return out


def carried(tree, i):
    """Tell for every link if joint i carries it."""
    flags = [False] * len(tree.links)
    for k, joint in enumerate(tree.joints):
        flags[k + 1] = k == i or flags[joint.parent]
    return flags


def jacobian_of_point(tree, pose, i, point):
    """[J0 Jm] of a point of link i, inertial axes: columns written joint by joint."""
    J = np.zeros((6, 6 + tree.n))
    J[:3, :3] = pose.RL[0]
    J[3:, :3] = -skew(point - pose.rL[0]) @ pose.RL[0]
    J[3:, 3:6] = np.eye(3)
    for k, joint in enumerate(tree.joints):
        if joint.column < 0 or not carried(tree, k)[i]:
            continue
        axis = pose.e[k]
        if joint.kind == "prismatic":
            J[3:, 6 + joint.column] = axis
        else:
            J[:3, 6 + joint.column] = axis
            J[3:, 6 + joint.column] = np.cross(axis, point - pose.rJ[k])
    return J


def moved(tree, R0, r0, qm, u, h):
    """The pose after a time h at constant speeds u."""
    omega = R0 @ u[:3]
    angle = np.linalg.norm(omega) * h
    R = turn(omega / np.linalg.norm(omega), angle) @ R0 if angle else R0
    return R, r0 + h * u[3:6], qm + h * u[6:]


def masses(tree, pose):
    """M_i of every link (9, 30)."""
    return [
        np.block(
            [
                [R @ link.inertia @ R.T, np.zeros((3, 3))],
                [np.zeros((3, 3)), link.mass * np.eye(3)],
            ]
        )
        for link, R in zip(tree.links, pose.RL, strict=True)
    ]


def link_jacobians(tree, pose):
    return [jacobian_of_point(tree, pose, i, pose.rL[i]) for i in range(len(tree.links))]


def inertia(tree, R0, r0, qm):
    """H = Σ Jᵀ M J (39)."""
    pose = kinematics(tree, R0, r0, qm)
    parts = zip(link_jacobians(tree, pose), masses(tree, pose), strict=True)
    return sum(J.T @ M @ J for J, M in parts)


def bias(tree, R0, r0, qm, u):
    """C q̇ (40): Σ Jᵀ (M J̇ u + [ω × I ω; 0]); J̇ u from the acceleration recursion at q̈ = 0."""
    pose = kinematics(tree, R0, r0, qm)
    Js = link_jacobians(tree, pose)
    omega = [J[:3] @ u for J in Js]
    alpha, acceleration = [np.zeros(3)], [np.zeros(3)]  # of the centres of mass
    for k, joint in enumerate(tree.joints):
        i = joint.parent
        lever = pose.rJ[k] - pose.rL[i]
        a = acceleration[i] + np.cross(alpha[i], lever)
        a = a + np.cross(omega[i], np.cross(omega[i], lever))
        al = alpha[i]
        arm = pose.rL[k + 1] - pose.rJ[k]
        if joint.column >= 0:
            rate = pose.e[k] * u[6 + joint.column]
            if joint.kind == "prismatic":
                a = a + 2 * np.cross(omega[i], rate)
            else:
                al = al + np.cross(omega[i], rate)
        w = omega[k + 1]
        a = a + np.cross(al, arm) + np.cross(w, np.cross(w, arm))
        alpha.append(al)
        acceleration.append(a)
    total = np.zeros(len(u))
    parts = zip(Js, masses(tree, pose), alpha, acceleration, omega, strict=True)
    for J, M, al, a, w in parts:
        I = M[:3, :3]
        gyroscopic = np.concatenate([np.cross(w, I @ w), np.zeros(3)])
        total += J.T @ (M @ np.concatenate([al, a]) + gyroscopic)
    return total


def loads(tree, pose, wrenches):
    """Nᵀ w (42); wrenches `(n_links, 6)`, base first."""
    parts = zip(link_jacobians(tree, pose), wrenches, strict=True)
    return sum(J.T @ w for J, w in parts)
