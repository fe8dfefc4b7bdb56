"""Functions on symbols: what NumPy does with single numbers works, and refusals name a remedy."""

import numpy as np
import pytest

import remora as rm

ROBOT = rm.load("vt18_satellite")


@pytest.mark.parametrize(
    "join",
    [
        lambda q: np.stack([q[0], q[1]], axis=-1),
        lambda q: np.stack([q[0], 2.0]),
        lambda q: np.stack((q[:2], q[2:4]), axis=-1)[0],
        lambda q: np.hstack([q[0], q[1:2]]),
        lambda q: np.append(q[:1], q[3]),
        lambda q: np.concatenate([np.atleast_1d(q[5]), q[:1]]),
    ],
)
def test_numbers_are_joined_as_in_numpy(join):
    def law(t, q, v):
        return np.concatenate([1e-3 * join(q), np.zeros(ROBOT.nv - 2)])

    q, v = rm.random_state(ROBOT, 3)
    batch = rm.simulate_batch(
        ROBOT,
        q[None],
        v[None],
        0.1,
        integrator=rm.Integrator(step=0.05),
        torque=law,
        record=rm.Record(progress=False),
    )
    alone = rm.simulate(
        ROBOT,
        q,
        v,
        0.1,
        integrator=rm.Integrator("rk4", step=0.05),
        torque=lambda t, q, v: law(t, q, v),
    )
    assert np.allclose(batch.v[0, -1], alone.v[-1], rtol=0, atol=1e-13)


class Allocation(rm.Component):
    gain: float = 3.0

    def interface(self, robot):
        return rm.Interface(outputs={"u": rm.Signal((3,), "")})

    def outputs(self, at):
        A = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, self.gain]])
        return {"u": np.linalg.pinv(A) @ np.array([1.0, 2.0])}


def test_a_function_of_numbers_on_a_parameter_is_named_with_its_line(tmp_path):
    """In C the parameters are members of a struct: symbols, while in runs they are numbers."""
    system = rm.System(ROBOT, [Allocation()])
    assert system.untraceable == {}
    text = (
        r"outputs of component 'allocation' passes symbols .* line \d+, in outputs: .*pinv.*linear"
    )
    with pytest.raises(rm.RemoraError, match=text):
        rm.save_component_c(system, "allocation", tmp_path)
