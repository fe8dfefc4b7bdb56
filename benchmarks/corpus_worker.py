"""Worker process of `corpus.py`: load a robot file, compare it with a peer, run the commands on it.

`corpus.py` restarts this process after a crash or a timeout.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import time
import traceback
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import remora as rm
from remora.errors import ModelError, RemoraError
from remora.model import joints
from remora.model.robot import Named, Robot

#: Reasons of refusal, and the patterns of the error messages they are recognized by.
REASONS = (
    ("closed loop", r"closes a loop|closed loop"),
    ("not a robot (no bodies, a part for others to include)", r"has no bodies|others include"),
    ("another file format", r"name it \.|root of an? \w+ file must be|this is (SDF|MJCF)"),
    ("xacro template", r"xacro"),
    ("refused by MuJoCo", r"MuJoCo"),
    ("a mass that follows from a mesh that is not there", r"mass follows from a mesh"),
    ("a file outside the allowed folder", r"leads out of"),
    ("an included file is missing", r"is not found|cannot be read"),
    ("sub-models, deformable bodies, plugins", r"sub-models|deformable|plugins"),
    ("an equality of tendons", r"equality"),
    ("inertia along a tendon", r"tendon"),
    ("a number that is none, too many or too few numbers", r"is not a number|must be \d+ number"),
    ("no mass, or inertia that makes forward dynamics undefined", r"mass|inertia|forward dynamics"),
    ("not a tree (names, roots, cycles, parents)", r"root|cycle|unknown (parent|child)|used twice"),
    ("not well-formed XML", r"well-formed|decoded|empty"),
    ("unknown joint type", r"unknown (type|kind)"),
)


def examined(file: str, commands: bool) -> dict[str, Any]:
    """Return the result for a file: whether it loads, its agreement, the commands' outcomes."""
    path, result = Path(file), {"file": file, "format": file_format(Path(file))}
    robot: Robot | None = None
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = rm.load(path)
        result |= {"loads": True, "nv": robot.nv, "bodies": len(robot.bodies)}
        result["warnings"] = len(robot.warnings)
    except RemoraError as error:
        faults = error.faults if isinstance(error, ModelError) else ()
        text = str(faults[0]) if faults else str(error)
        result |= {"loads": False, "why": reason(text), "text": text[:300]}
    except Exception:
        result |= {"loads": False, "why": "traceback", "text": traceback.format_exc()[-600:]}
    result["seconds"] = time.perf_counter() - start
    if result["format"] in PEERS:
        result |= compared(path, robot, PEERS[result["format"]])
    if commands and robot is not None:
        result["commands"] = tried(path, robot)
    return result


def file_format(path: Path) -> str:
    """Return urdf, mjcf or sdf."""
    return {".xml": "mjcf"}.get(path.suffix, path.suffix[1:])


def reason(text: str) -> str:
    """Return the category of an error message."""
    found = (name for name, pattern in REASONS if re.search(pattern, text))
    return next(found, "other")


# Peers ---------------------------------------------------------------------------------------


def compared(path: Path, robot: Robot | None, peer: Any) -> dict[str, Any]:
    """Return whether the peer reads the file, and its deviation from Remora."""
    try:
        model, facts = peer.model(path, robot)
    except ImportError:
        return {}
    except Exception as error:
        return {"peer": False, "peer_text": str(error)[:200]}
    result: dict[str, Any] = {"peer": True} | facts
    if robot is None or robot.nv == 0 or facts["peer_nv"] == 0:
        return result
    try:
        result["errors"] = difference(robot, model, peer)
    except RemoraError as error:
        result["not_compared"] = str(error)[:200]
    return result


def difference(robot: Robot, model: Any, peer: Any) -> dict[str, float]:
    """Return the largest relative differences of mass matrix, bias and acceleration.

    Mimic joints are unconstrained in the peer's model. Its velocity is v_all = G v, so the mass
    matrix is GᵀMG, and the accelerations follow from it. Loop constraints are switched off: MuJoCo
    has compliant ones.
    """
    robot = robot.with_active(off=[c.name for c in robot.constraints if c.active])
    free, G = released(robot)
    layout = peer.layout(free, model)
    worst = {"mass_matrix": 0.0, "bias": 0.0, "acceleration": 0.0}
    for seed in range(3):
        q, v = rm.random_state(robot, seed)
        tau = np.random.default_rng(seed).normal(size=robot.nv)
        whole = np.concatenate([np.zeros(0), *(joints.coordinates(j, q) for j in robot.joints)])
        H, b = peer.terms(model, layout.q_to(whole), layout.v_to(whole, G @ v))
        B = np.stack([layout.v_to(whole, e) for e in np.eye(free.nv)], axis=-1)
        still = layout.vdot_from(whole, G @ v, np.zeros(layout.nv))  # peer's vdot = 0
        M, bias = B.T @ H @ B, layout.tau_from(whole, b)
        M, h = G.T @ M @ G, G.T @ (bias - M @ still)
        ours = rm.mass_matrix(robot, q), rm.bias_force(robot, q, v)
        rotors = peer.rotors(robot)
        worst["mass_matrix"] = max(worst["mass_matrix"], relative(ours[0] - rotors, M))
        worst["bias"] = max(worst["bias"], relative(ours[1], h, M))
        formulation = "articulated" if robot.nv == free.nv else "composite"
        if np.any(rotors):
            vdot = np.linalg.solve(ours[0] - rotors, tau - ours[1])
        else:
            vdot = rm.forward_dynamics(robot, q, v, tau, formulation=formulation)
        theirs = np.linalg.solve(M, tau - h)
        worst["acceleration"] = max(worst["acceleration"], relative(vdot, theirs))
    return worst


def relative(ours: Any, theirs: Any, scale: Any = 0.0) -> float:
    """Return the largest difference relative to the largest value."""
    size = max(float(np.abs(theirs).max(initial=0.0)), float(np.abs(scale).max(initial=0.0)))
    return float(np.abs(ours - theirs).max(initial=0.0)) / (size or 1.0)


def released(robot: Robot) -> tuple[Robot, Any]:
    """Return the robot with its mimic joints unconstrained, and G with v_free = G v."""
    nq = nv = 0
    found = []
    G = np.zeros((sum(joints.kind(j).nv for j in robot.joints), robot.nv))
    for j in robot.joints:
        row = joints.kind(j)
        own = replace(j, q=slice(nq, nq + row.nq), v=slice(nv, nv + row.nv), mimic=None)
        G[own.v, j.v] = np.eye(row.nv) * (1.0 if j.mimic is None else j.mimic.ratio)
        nq, nv = own.q.stop, own.v.stop
        found.append(own)
    return replace(robot, joints=Named(found, "joint")), G


class MuJoCo:
    """MuJoCo's compiler and dynamics."""

    @staticmethod
    def model(path: Path, robot: Robot | None) -> tuple[Any, dict[str, Any]]:
        import mujoco

        model = mujoco.MjModel.from_xml_path(str(path))
        active = [int(t) for t, on in zip(model.eq_type, model.eq_active0, strict=True) if on]
        loop = any(t != int(mujoco.mjtEq.mjEQ_JOINT) for t in active)
        return model, {"peer_nv": int(model.nv), "loop": loop}

    @staticmethod
    def layout(robot: Robot, model: Any) -> Any:
        return rm.layouts.mujoco(robot, model)

    @staticmethod
    def terms(model: Any, q: Any, v: Any) -> tuple[Any, Any]:
        import mujoco

        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = q, v
        for stage in (mujoco.mj_fwdPosition, mujoco.mj_fwdVelocity):
            stage(model, data)
        H = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, H)
        return H, np.array(data.qfrc_bias)

    @staticmethod
    def rotors(robot: Robot) -> Any:
        return np.zeros((robot.nv, robot.nv))


class Pinocchio:
    """Pinocchio's URDF reader and dynamics; its mass matrix excludes rotor inertias."""

    @staticmethod
    def model(path: Path, robot: Robot | None) -> tuple[Any, dict[str, Any]]:
        import pinocchio as pin

        root = (
            [] if robot is None or robot.joints[0].kind == "fixed" else [pin.JointModelFreeFlyer()]
        )
        with contextlib.redirect_stderr(io.StringIO()):
            model = pin.buildModelFromUrdf(str(path), *root)
        model.gravity = pin.Motion.Zero()
        moving = model.nv - (6 if root else 0)
        return model, {"peer_nv": moving, "mass": sum(i.mass for i in model.inertias)}

    @staticmethod
    def layout(robot: Robot, model: Any) -> Any:
        return rm.layouts.pinocchio(robot, model)

    @staticmethod
    def terms(model: Any, q: Any, v: Any) -> tuple[Any, Any]:
        import pinocchio as pin

        data = model.createData()
        H = pin.crba(model, data, q)
        H = np.triu(H) + np.triu(H, 1).T - np.diag(model.armature)
        return H, pin.nonLinearEffects(model, data, q, v)

    @staticmethod
    def rotors(robot: Robot) -> Any:
        return np.zeros((robot.nv, robot.nv))


PEERS: dict[str, Any] = {"mjcf": MuJoCo, "urdf": Pinocchio}


# Commands ------------------------------------------------------------------------------------


def tried(path: Path, robot: Robot) -> dict[str, str]:
    """Return `ok`, the error message or the traceback for every command."""
    result: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    command(path, robot, Path(folder))
                result[name] = "ok"
            except RemoraError as error:
                result[name] = "refused: " + " ".join(str(error).split())[:300]
            except Exception:
                result[name] = "traceback: " + traceback.format_exc()[-1500:]
            result[f"{name}_seconds"] = f"{time.perf_counter() - start:.1f}"
    return result


def _command_line(*words: str) -> None:
    from typer.testing import CliRunner

    from remora.cli import app

    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code != 0:
        raise RuntimeError(f"exit code {done.exit_code}: {done.output[-500:]}")


def _view(path: Path, robot: Robot, folder: Path) -> None:
    from remora.viewer.page.robot_page import RobotPage

    RobotPage(robot, port=0).close()


def _simulate(path: Path, robot: Robot, folder: Path) -> None:
    from remora.viewer.report.animation_html import save_html

    q, v = rm.neutral(robot), np.zeros(robot.nv)
    run = rm.simulate(
        robot,
        q,
        v,
        1.0,
        record=0.05,
        integrator=rm.Integrator(rtol=1e-6, atol=1e-8, max_steps=20_000),
    )
    save_html(run, folder / "run.html")


COMMANDS = {
    "info": lambda path, robot, folder: _command_line("info", str(path)),
    "view": _view,
    "compile": lambda path, robot, folder: _command_line("compile", str(path)),
    "c": lambda path, robot, folder: _command_line(
        "compile", str(path), "--target", "c", "--out", str(folder)
    ),
    "simulate": _simulate,
}


def serve(pipe: Any) -> None:
    """Examine the files received through the pipe until None is received."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(EOFError):
        while (job := pipe.recv()) is not None:
            pipe.send(examined(*job))
