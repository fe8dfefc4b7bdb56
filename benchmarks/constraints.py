"""Benchmark of closed chains: forward dynamics with loops against the same tree without them.

    python benchmarks/constraints.py [--json FILE]

Kernels for one state and for a batch on one thread, and the calls of Pinocchio
(`constraintDynamics`; for the Stewart platform `aba` of its tree, too) and, for the two arms,
MuJoCo (`mj_forward` with a soft weld). Rounds are interleaved and the minimum is reported; results
are compared first.
"""

from __future__ import annotations

import argparse
import json
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peer_libraries import MuJoCo, Pinocchio

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.cli.kernel_timing import machine

BATCH, ROUNDS = 1024, 60
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def two_arms(oblique: bool) -> tuple[rm.Robot, np.ndarray]:
    """Return two arms of seven joints whose hands are fixed to each other, and a closed state."""
    make = rm.Builder("two arms").body("bus", mass=200, inertia=(30, 40, 50))
    rng = np.random.default_rng(0)
    for side, y in (("left", 0.5), ("right", -0.5)):
        before, at = "bus", (0.3, y, 0.0)
        for k in range(7):
            name = f"{side}{k}"
            make.body(name, mass=5 - 0.5 * k, com=(0, 0, 0.15), inertia=(0.1, 0.1, 0.05))
            axis = (0, 0, 1) if k % 2 == 0 else (0, 1, 0)
            rpy = rng.normal(size=3) if oblique else (0, 0, 0)
            make.joint(f"{name}_joint", "revolute", before, name, xyz=at, rpy=rpy, axis=axis)
            before, at = name, (0.0, 0.0, 0.3)
    tree = make.build()
    q, _ = rm.random_state(tree, 1)
    x = rm.poses(tree, q)
    hand = dq.mul(x[7], pose.from_translation(np.array([0.0, 0.0, 0.2])))
    there = dq.mul(dq.conjugate(x[14]), hand)
    closed = rm.loops.add_constraint(
        tree, "grip", "fixed", "left6", "right6", parent_xyz=(0, 0, 0.2), child_placement=there
    )  # fmt: skip
    return closed, q


def robots() -> dict[str, tuple[rm.Robot, np.ndarray]]:
    four_bar = runpy.run_path(str(EXAMPLES / "41_four_bar.py"))["linkage"]()
    stewart = runpy.run_path(str(EXAMPLES / "42_stewart_platform.py"))["platform"]()
    start = rm.neutral(stewart)
    for i in range(6):
        start[stewart.joints[f"slide{i}"].q] = 1.0
    return {
        "two arms, aligned": two_arms(oblique=False),
        "two arms, oblique": two_arms(oblique=True),
        "four-bar linkage": (four_bar, rm.close_loops(four_bar, [0.9, -0.4, 1.6])[0]),
        "Stewart platform": (stewart, rm.close_loops(stewart, start)[0]),
    }


def seconds(cases: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the shortest time of each case, in interleaved rounds."""
    best = dict.fromkeys(cases, np.inf)
    for _ in range(ROUNDS):
        for name, case in cases.items():
            start = time.perf_counter()
            for _ in range(repeats):
                case()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats)
    return best


def peers(robot: rm.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> dict[str, Any]:
    """Return the calls of other libraries for one state."""
    tree, grip = robot.replace(constraints=()), robot.constraints[0]
    calls: dict[str, Any] = {}
    peer = Pinocchio(tree, 1)
    pin, layout = peer.pin, peer.layout

    def se3(x: np.ndarray) -> Any:
        return pin.SE3(pose.to_rotation_matrix(x), pose.translation(x))

    rigid = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_6D, peer.model, grip.parent + 1, se3(grip.parent_placement),
        grip.child + 1, se3(grip.child_placement), pin.ReferenceFrame.LOCAL,
    )  # fmt: skip
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(rigid)
    datas.append(rigid.createData())
    pin.initConstraintDynamics(peer.model, peer.data, models, datas)
    settings = pin.ProximalSettings(1e-12, 1e-12, 20)
    there = layout.q_to(q), layout.v_to(q, v), layout.tau_to(q, tau)

    def constrained() -> Any:
        return pin.constraintDynamics(peer.model, peer.data, *there, models, datas, settings)

    ours = layout.vdot_to(q, v, rm.forward_dynamics(robot, q, v, tau))
    error = np.max(np.abs(constrained() - ours)) / np.max(np.abs(ours))
    assert error < 1e-10, error
    calls["Pinocchio"] = constrained

    other = MuJoCo(tree, 1)
    x = rm.poses(tree, q)
    relative = dq.mul(dq.conjugate(x[grip.child]), x[grip.parent])
    numbers = " ".join(repr(float(e)) for e in (*pose.translation(relative), *relative[:4]))
    ends = f'body1="{tree.bodies[grip.child].name}" body2="{tree.bodies[grip.parent].name}"'
    from peer_libraries import _mjcf

    text = _mjcf(tree).replace(
        "</mujoco>", f'<equality><weld {ends} relpose="{numbers}"/></equality></mujoco>'
    )
    model = other.mujoco.MjModel.from_xml_string(text)
    data = other.mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = other.layout.q_to(q), other.layout.v_to(q, v)
    data.qfrc_applied[:] = other.layout.tau_to(q, tau)
    calls["MuJoCo"] = lambda: other.mujoco.mj_forward(model, data)
    return calls


def stewart_peers(robot: rm.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> dict[str, Any]:
    """Return Pinocchio's calls for the Stewart platform and its tree, at one state."""
    import pinocchio as pin

    def se3(x: np.ndarray) -> Any:
        return pin.SE3(pose.to_rotation_matrix(x), pose.translation(x))

    made: dict[str, Callable[[Any], Any]] = {
        "free": lambda axes: pin.JointModelFreeFlyer(),
        "universal": lambda axes: pin.JointModelUniversal(*axes),
        "prismatic": lambda axes: pin.JointModelPrismaticUnaligned(axes[0]),
    }
    model, ids = pin.Model(), []
    model.gravity = pin.Motion.Zero()
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        parent = 0 if joint.parent < 0 else ids[joint.parent]
        sort = made[joint.kind](joint.axes)
        ids.append(model.addJoint(parent, sort, se3(joint.placement), joint.name))
        inertia = pin.Inertia(float(body.mass), body.com, body.inertia)
        model.appendBodyToJoint(ids[-1], inertia, pin.SE3.Identity())
    there = [pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)]
    for i, joint in zip(ids, robot.joints, strict=True):
        own = model.joints[i]
        values = [q[joint.q], v[joint.v], tau[joint.v]]
        if joint.kind == "free":  # position and x, y, z, w; linear before angular
            values[0] = [*pose.translation(q[joint.q]), *np.roll(q[joint.q][:4], -1)]
            values[1:] = [np.roll(x, 3) for x in values[1:]]
        for x, value, start in zip(there, values, (own.idx_q, own.idx_v, own.idx_v), strict=True):
            x[start : start + len(value)] = value
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in robot.constraints:
        ends = ids[c.parent], se3(c.parent_placement), ids[c.child], se3(c.child_placement)
        local = pin.ReferenceFrame.LOCAL
        models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends, local))
        datas.append(models[-1].createData())
    data, settings = model.createData(), pin.ProximalSettings(1e-12, 1e-12, 20)
    pin.initConstraintDynamics(model, data, models, datas)

    def constrained() -> Any:
        return pin.constraintDynamics(model, data, *there, models, datas, settings)

    found, ours = constrained(), rm.forward_dynamics(robot, q, v, tau)
    for i, joint in zip(ids, robot.joints, strict=True):
        if joint.kind != "free":
            start = model.joints[i].idx_v
            assert np.max(np.abs(found[start : start + len(ours[joint.v])] - ours[joint.v])) < 1e-10
    return {"Pinocchio": constrained, "Pinocchio, tree": lambda: pin.aba(model, data, *there)}


def measured(name: str, robot: rm.Robot, q: np.ndarray) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    tree = robot.replace(constraints=())
    v, tau = rng.normal(size=(2, BATCH, robot.nv))
    v = rm.loops.project_velocity(robot, q, v)
    many = np.broadcast_to(q, (BATCH, robot.nq)).copy(), v, tau
    one = tuple(np.ascontiguousarray(a[0]) for a in many)
    kernels = {"tree": rm.compile(rm.forward_dynamics, tree),
               "closed": rm.compile(rm.forward_dynamics, robot)}  # fmt: skip
    wanted = rm.forward_dynamics(robot, *one)
    error = np.max(np.abs(kernels["closed"](*one) - wanted)) / np.max(np.abs(wanted))
    assert error < 1e-10, error
    out = np.empty((BATCH, robot.nv))
    batch = seconds({k: lambda f=f: f(*many, out=out) for k, f in kernels.items()}, 1)
    calls: dict[str, Any] = {k: lambda f=f: f(*one) for k, f in kernels.items()}
    if name.startswith("two arms"):
        calls |= peers(robot, *one)
    if name.startswith("Stewart"):
        calls |= stewart_peers(robot, *one)
    single = seconds(calls, 20)
    return {
        "robot": name,
        "freedoms": robot.nv,
        "equations": rm.loops.constraint_residual(robot, q).size,
        "batch us": {k: 1e6 * s / BATCH for k, s in batch.items()},
        "call us": {k: 1e6 * s for k, s in single.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [measured(name, *case) for name, case in robots().items()]
    for r in rows:
        ratio = r["batch us"]["closed"] / r["batch us"]["tree"]
        print(f"{r['robot']:20} {r['equations']:3} equations, batch {ratio:.2f}x", r["call us"])
    if options.json:
        data = {"machine": machine(), "batch": BATCH, "rows": rows}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
