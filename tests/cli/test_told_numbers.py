"""Numbers that commands print, against those of the run: summary, capture, benchmark."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import remora as rm
from benchmark_scripts import print_results
from in_process import remora
from remora.algebra import pose
from remora.cli import capture_demo
from remora.cli.demo import _new_folder
from remora.cli.kernel_timing import Case, Result
from remora.cli.run import _report
from remora.simulation.recording.conservation import Conservation, Drift

SCENARIO = """
scenario: 1
description: two arms [of one robot]
robot: vt18_satellite
start: {speeds: {J1: 0.1, J2: -0.05}}
phases:
  - {name: drift, duration: 4, until: [{joint: J1, above: 0.1, name: far}]}
  - {duration: 2, torque: {J2: 0.3}, until: [{time: 1.5, name: late}]}
integrator: {name: rk4, step: 0.1}
output: {sample: 0.5}
"""


def told(show, *arguments):
    """Return what a function prints on a console."""
    file = io.StringIO()
    show(Console(file=file, width=120, highlight=False, emoji=False), *arguments)
    return file.getvalue()


def rows(text):
    """Return the rows of a table without a header by their first column; blank ones continue."""
    found, name = {}, ""
    for line in text.splitlines():
        first, _, rest = line.partition("  ") if line[:1] != " " else ("", "", line)
        name = first.strip() or name
        found.setdefault(name, []).append(rest.strip())
    return found


def test_the_summary_of_a_run(tmp_path):
    (tmp_path / "two.yaml").write_text(SCENARIO, encoding="utf-8")
    scenario = rm.load_scenario(tmp_path / "two.yaml")
    run = scenario.run(progress=False)
    text = told(_report, scenario, run, None)
    shown = rows(text)
    assert text.splitlines()[0] == "two: two arms [of one robot]"
    assert shown["status"][0].startswith(run.status)
    assert shown["robot"] == ["vt18_satellite, 9 degrees of freedom"]
    asked = f" of at most {run.settings['duration']:.6g} s"
    assert shown["simulated"] == [
        f"{run.t[-1] - run.t[0]:.6g} s{asked}; {len(run)} samples, rk4, "
        f"rtol {run.settings['rtol']:g}"
    ]
    first, second = run.phase_starts
    assert 0.5 < second < 3.9
    assert [re.sub(" +", " ", x) for x in shown["phases"]] == [
        f"{first:.4f} to {second:.4f} s drift", f"{second:.4f} to {run.t[-1]:.4f} s phase 2",
    ]  # fmt: skip
    assert shown["events"] == [f"{e.t:.4f} s  {e.name} ({e.action})" for e in run.events]
    kept = run.conservation()
    for name, drift in (
        ("linear momentum", kept.linear_momentum),
        ("angular momentum", kept.angular_momentum),
        ("centre of mass", kept.center_of_mass),
        ("energy balance", kept.energy),
    ):
        numbers = f"drift {drift.absolute:.1e} {drift.unit}, relative {drift.relative:.1e}"
        broken = f"not conserved: {drift.broken_by}"
        assert shown[name] == [broken if drift.broken_by else numbers]
    assert shown["saved in"] == ["nowhere: --out DIR saves it"]
    assert rows(told(_report, scenario, run, tmp_path))["saved in"] == [str(tmp_path)]
    saved = remora("run", tmp_path / "two.yaml", "--out", tmp_path / "run", "--quiet")
    assert saved.returncode == 0
    assert rows(saved.stdout)["simulated"] == shown["simulated"]
    assert len(rm.open_run(tmp_path / "run")) == len(run)


def test_what_broke_conservation_and_how_a_run_ended_are_told():
    push = Drift(0.5, 2.0, "N s", "peak", "external wrenches")
    energy = Drift(1e-9, 4.0, "J", "peak")
    kept = Conservation(push, push, push, energy, 1e-15, 1e-15, constraint=2e-5)
    robot = SimpleNamespace(name="one", nv=3)
    events = [SimpleNamespace(t=0.1 * k, name=f"e{k}", action="record") for k in range(40)]
    settings = {"duration": 4.0, "integrator": "rk4", "rtol": 1e-9}

    class Switch(float):
        t = property(float)

        def __str__(self):
            return "grip closed"

    class Made(SimpleNamespace):
        def __len__(self):
            return 7

        def conservation(self):
            return kept

    run = Made(message="too far", status="stopped", robot=robot, duration=4.0, settings=settings,
               phase_starts=(), t=[0.0, 4.0], switches=[Switch(1.5), Switch(2.25)],
               events=events)  # fmt: skip
    scenario = SimpleNamespace(name="a", description="b", phases=())
    shown = rows(told(_report, scenario, run, None))
    assert shown["status"] == ["stopped: too far"]
    assert shown["simulated"] == ["4 s; 7 samples, rk4, rtol 1e-09"]
    assert shown["linear momentum"] == ["not conserved: external wrenches"]
    assert shown["energy balance"] == ["drift 1.0e-09 J, relative 2.5e-10"]
    assert shown["constraints"] == ["violated by at most 2.0e-05 m or rad"]
    assert shown["switched"] == ["1.5000 s  grip closed", "2.2500 s  grip closed"]
    lines = shown["events"]
    assert lines[-1] == f"... and {40 - (len(lines) - 1)} more"
    assert lines[1] == "0.1000 s  e1 (record)"


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("code", [True, False])
def test_an_interrupted_run_tells_how_it_goes_on(monkeypatch, tmp_path, saved, code):
    run = SimpleNamespace(status="interrupted")
    scenario = SimpleNamespace(run=lambda *_, **__: run)
    monkeypatch.setattr(rm, "load_scenario", lambda *_: scenario)
    monkeypatch.setattr("remora.cli.run._report", lambda *_: None)
    words = ["--out", "there"] * saved + ["--allow-code"] * code
    done = remora("run", "a.yaml", *words, folder=tmp_path)
    again = "remora run a.yaml --out there --resume" + " --allow-code" * code
    assert done.stdout == (f"interrupted; to resume: {again}\n" if saved else "")
    assert done.returncode == 130


class Motion(SimpleNamespace):
    """A motion of the servicer and its target, with frames by the reference equations."""

    def frame_pose(self, name):
        return rm.frame_pose(self.robot, self.q, name)

    def frame_twist(self, name):
        return rm.frame_twist(self.robot, self.q, self.v, name)

    def conservation(self):
        drifts = (Drift(10.0**-k, float(k), "N s", f"peak {k}") for k in range(9, 13))
        return Conservation(*drifts, 1e-15, 2e-15, constraint=3e-6)


@pytest.fixture(scope="module")
def motion():
    robot = rm.load_scenario("capture").robot
    rng = np.random.default_rng(4)
    q0, _ = rm.random_state(robot, 2)
    q = np.stack([rm.integrate(robot, q0, s * 0.1 * rng.normal(size=robot.nv)) for s in range(5)])
    impulse = np.array([3.0, 4.0, 0.0, 0.0, 0.3, 0.4])
    switch = SimpleNamespace(t=12.345, phase=1, impulses={"grapple": impulse}, energy_loss=0.0123)
    return Motion(
        robot=robot, q=q, v=0.2 * rng.normal(size=(5, robot.nv)), t=np.arange(5.0) * 7,
        phase=np.array([0, 0, 0, 1, 1]), switches=(switch,), tau=rng.normal(size=(5, robot.nv)),
        signals={"wheels.momentum": rng.normal(size=(5, 3))},
    )  # fmt: skip


def test_what_the_demonstration_tells_of_the_capture(motion):
    text = " ".join(told(capture_demo._tell_motion, motion).split())
    bus, target = (motion.frame_pose(name) for name in ("servicer/bus", "target/bus"))
    R = pose.to_rotation_matrix(bus)
    cosine = 0.5 * (np.trace(R[0].T @ R[:3], axis1=1, axis2=2) - 1.0)
    # a base turns by the rotation vector of its change
    turned = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max()
    p = pose.translation(bus)
    moved = 1e3 * np.linalg.norm(p[:3] - p[0], axis=1).max()
    tool, fixture = (
        pose.translation(motion.frame_pose(name))[2] for name in ("servicer/tool", "target/fixture")
    )
    still = motion.q[2].copy()
    still[:8] = motion.q[0, :8]
    planned = pose.translation(rm.frame_pose(motion.robot, still, "servicer/tool"))
    omega = np.degrees(np.linalg.norm(motion.frame_twist("target/bus")[:, :3], axis=1))
    names = ("shoulder_base", "flange")
    first, last = (motion.robot.body_index(f"servicer/{name}") for name in names)
    arm = [motion.robot.joints[i].v.start for i in range(first, last + 1)]
    assert len(arm) == 7
    for words in (
        f"turned by up to {turned:.1f}° and moved by {moved:.0f} mm",
        f"would miss by {1e3 * np.linalg.norm(planned - fixture):.0f} mm",
        f"at 12.35 s, {1e3 * np.linalg.norm(tool - fixture):.0f} mm from the fixture, which turned "
        f"at {omega[2]:.2f}°/s",
        "12.3 mJ lost",
        f"at 28 s the satellite turns at {omega[-1]:.3f}°/s, the joints at most at "
        f"{np.degrees(np.abs(motion.v[-1, arm]).max()):.3f}°/s",
        f"in the wheels: {np.linalg.norm(motion.signals['wheels.momentum'][-1]):.2f} N m s",
        f"at most {np.abs(motion.tau[:, arm]).max():.1f} N m in the arm",
    ):
        assert words in text
    assert target.shape == (5, 8)
    table = told(lambda console, run: console.print(capture_demo._kept(run)), motion)
    lines = [re.sub(" +", " ", line).strip() for line in table.splitlines()]
    assert lines[1:] == [
        "linear momentum 1.0e-09 N s 1.1e-10 9 N s, peak 9",
        "angular momentum 1.0e-10 N s 1.0e-11 10 N s, peak 10",
        "centre of mass 1.0e-11 N s 9.1e-13 11 N s, peak 11",
        "energy balance 1.0e-12 N s 8.3e-14 12 N s, peak 12",
        "unit quaternions 1.0e-15 never renormalized",
        "grapple 3.0e-06 m or rad constraint residual",
    ]  # fmt: skip


def test_an_interrupted_demonstration_says_so_and_folders_are_new(tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt, match="at 3 s"):
        capture_demo._whole(SimpleNamespace(status="interrupted", message="at 3 s"))
    whole = SimpleNamespace(status="complete")
    assert capture_demo._whole(whole) is whole
    monkeypatch.chdir(tmp_path)
    assert str(_new_folder(None)) == "remora-demo"
    for name in ("remora-demo", "remora-demo-2"):
        (tmp_path / name).mkdir()
    assert str(_new_folder(None)) == "remora-demo-3"
    with pytest.raises(rm.RemoraError, match="exists already"):
        _new_folder(tmp_path)
    assert _new_folder(tmp_path / "new") == tmp_path / "new"


def test_the_table_of_a_benchmark_compares_the_same_work():
    def case(library, states, threads, seconds, function="inverse_dynamics", dtype="float64"):
        made = Case(function, library, f"{library}.{function}", states, threads, dtype,
                    lambda: None, (), 0.0)  # fmt: skip
        return Result(made, seconds)

    results = [
        case("Remora", 1, 1, 1e-6), case("Remora", 64, 1, 0.25e-6), case("Remora", 64, 4, 0.125e-6),
        case("Pinocchio", 1, 1, 3e-6), case("MuJoCo", 1, 1, 5e-6), case("MuJoCo", 64, 1, 2e-6),
        case("Remora", 1, 1, 2e-6, "mass_matrix", "float32"),
        case("Pinocchio", 1, 1, 9e-6, "mass_matrix"),
    ]  # fmt: skip
    text = told(lambda console: print_results("a robot", results, console))
    lines = [re.sub(" +", " ", line).strip() for line in text.splitlines()]
    body = [line for line in lines if re.search(r"\d\.\d{3} ", line + " ")]
    cells = {tuple(line.split()[-5:]) for line in body}
    assert ("1.000", "3.00", "3.0x", "5.00", "5.0x") in cells
    assert ("0.250", "3.00*", "12.0x", "2.00", "8.0x") in cells
    assert any(line.endswith("0.125 3.00* 24.0x -") for line in body)
    assert any("float32" in line and line.endswith("2.000 - -") for line in body)
    assert any("batch of 64, 1 thread " in line for line in body)
    assert any("batch of 64, 4 threads " in line for line in body)
    assert "* its call for one state: it has no loop over a batch for this" in lines
    assert "Pinocchio: Pinocchio.inverse_dynamics, Pinocchio.mass_matrix" in lines
    alone = told(lambda console: print_results("a robot", results[:1], console))
    assert "*" not in alone
