"""The energy check tells a sensor that reads the reaction from one that reads the actuation."""

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import arm


def measured(sensor, moving=True, boxes=1):
    """An arm that carries others, which are known to their sensors only, and exact samples."""
    rng = np.random.default_rng(1)
    names = [f"load{k}" for k in range(boxes)]
    whole = rm.Assembly(
        {"arm": arm(), **dict.fromkeys(names, arm())},
        [(name, "arm", ("tip", "link0")[k]) for k, name in enumerate(names)],
        gravity=(0, 0, -9.81),
    )
    t = np.linspace(0.0, 1.0, 50)
    q, v, vdot = rng.normal(size=(3, 50, whole.nv))
    v = v if moving else 0.0 * v
    tau = whole.inverse_dynamics(q, v, vdot)
    parts = {"arm": arm()}
    for name in names:
        load = whole.joint_loads(q, v, vdot)[whole.names.index(name)].base
        parts[name] = rm.BlackBox(rm.papers.sa24.SensorRecording(t, load), sensor=sensor)
    known = rm.Assembly(parts, whole.connections, whole.gravity)
    return known, (q[:, :2], v[:, :2], vdot[:, :2], tau[:, :2], t)


@pytest.mark.parametrize("boxes", [1, 2])
def test_the_right_sign_has_the_factor_one(boxes):
    assembly, samples = measured("actuation", boxes=boxes)
    factors = assembly.check_energy(*samples)
    assert np.allclose(list(factors.values()), 1.0, atol=1e-12)
    assert list(factors) == [f"load{k}" for k in range(boxes)]


def test_the_wrong_sign_is_named():
    assembly, samples = measured("reaction", boxes=2)
    with pytest.raises(
        rm.RemoraError, match=r"'load0': its wrench has the wrong sign; .* -1 times"
    ):
        assembly.check_energy(*samples)


def test_samples_without_power_say_nothing():
    assembly, samples = measured("actuation", moving=False)
    with pytest.raises(rm.RemoraError, match="'load0' exchanges too little power"):
        assembly.check_energy(*samples)
    with pytest.raises(rm.RemoraError, match="no subsystem is a black box with a predecessor"):
        rm.Assembly({"arm": arm()}).check_energy(*samples)
    with pytest.raises(rm.errors.ShapeError, match=r"must be samples \(n, nv\)"):
        assembly.check_energy(*(x[0] for x in samples))
