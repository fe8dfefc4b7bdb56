"""Components that read what may change: no run uses code that was made of the old value."""

import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from sliders import slider

MODULE = types.SimpleNamespace(force=1.0)

SCRIPT = """
import os
import remora as rm
from sliders import slider

class Push(rm.Component):
    def act(self, at):
        return rm.JointForce("slide", float(READ) * at.t[..., None])

system = rm.System(slider(), [Push()])
print(rm.simulate(system, [0.0], [0.0], 1.0, record=rm.Record(progress=False)).q[-1, 0])
"""


@pytest.mark.parametrize(
    "reads", ['os.environ["FORCE"]', 'open(os.environ["FORCE_FILE"]).read()'], ids=["set", "file"]
)
def test_another_process_sees_the_new_value(tmp_path, reads):
    """A force of t N, and of 4 t N, on 1 kg for 1 s."""
    ends, file = [], tmp_path / "force.txt"
    for force in ("1", "4"):
        file.write_text(force)
        more = {"REMORA_CACHE": str(tmp_path / "kernels"), "FORCE": force, "FORCE_FILE": str(file)}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SCRIPT).replace("READ", reads)],
            env={**os.environ, **more}, cwd=os.path.dirname(os.path.dirname(__file__)),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        ends.append(float(done.stdout))
    np.testing.assert_allclose(ends, [1 / 6, 4 / 6], rtol=1e-12)


class Push(rm.Component):
    where: str = "environment"

    def act(self, at):
        if self.where == "environment":
            return rm.JointForce("slide", float(os.environ["FORCE"]) * at.t[..., None])
        return rm.JointForce("slide", MODULE.force * at.t[..., None])


@pytest.mark.parametrize("where", ["environment", "module"])
@pytest.mark.parametrize("how", ["run", "run with samples", "batch"])
def test_the_next_run_sees_the_new_value(where, how, monkeypatch):
    monkeypatch.setenv("FORCE", "0")
    system = rm.System(slider(), [Push(where=where)])
    ends = []
    for force in (1.0, 4.0):
        if where == "environment":
            monkeypatch.setenv("FORCE", str(force))
        else:
            monkeypatch.setattr(MODULE, "force", force)
        if how == "batch":
            made = rm.simulate_batch(
                system,
                [[0.0]],
                [[0.0]],
                1.0,
                integrator=rm.Integrator(step=0.1),
                record=rm.Record(progress=False),
            )
            ends.append(made.q[0, -1, 0])
        else:
            sample = {"sample": 0.3} if how == "run with samples" else {}
            ends.append(
                rm.simulate(system, [0.0], [0.0], 1.0, **grouped(progress=False, **sample)).q[-1, 0]
            )
    np.testing.assert_allclose(ends, [1 / 6, 4 / 6], rtol=1e-12)


def test_a_torque_of_a_batch_sees_the_new_value(monkeypatch):
    def torque(t, q, v):
        return 0.0 * q + float(os.environ["FORCE"])

    ends = []
    for force in (1.0, 4.0):
        monkeypatch.setenv("FORCE", str(force))
        options = {"step": 0.1, "torque": torque, "progress": False}
        ends.append(
            rm.simulate_batch(slider(), [[0.0]], [[0.0]], 1.0, **grouped(True, **options)).q[
                0, -1, 0
            ]
        )
    np.testing.assert_allclose(ends, [0.5, 2.0], rtol=1e-12)


def test_a_formulation_sees_the_new_value(monkeypatch):
    original = rm.dynamics.FORMULATIONS["composite"]

    def hybrid(*arguments):
        vdot, tau = original.hybrid(*arguments)
        return float(os.environ["FORCE"]) * vdot, tau

    monkeypatch.setitem(rm.dynamics.FORMULATIONS, "mine", type(original)(hybrid, None))
    ends = []
    for force in (1.0, 4.0):
        monkeypatch.setenv("FORCE", str(force))
        options = {"torque": [1.0], "formulation": "mine", "progress": False}
        ends.append(rm.simulate(slider(), [0.0], [0.0], 1.0, **grouped(**options)).q[-1, 0])
    np.testing.assert_allclose(ends, [0.5, 2.0], rtol=1e-12)
