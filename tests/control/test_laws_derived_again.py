"""Three laws against a derivation of their own: body by body, without mass matrix or Jacobian.

Momentum is summed over the bodies, velocities and accelerations of the tool are difference
quotients of its pose, and motions come from forward dynamics by articulated bodies.
"""

import numpy as np
import pytest

import remora as rm
from arms import arm, wheeled
from laws_on_small_robots import values
from remora.algebra import pose, quaternion

ARM = arm(6)
H = 1e-5


def momentum(robot, q, v):
    """Return [P, L] about the inertial origin, summed over the bodies."""
    P, L = np.zeros(3), np.zeros(3)
    for x, s, body in zip(rm.poses(robot, q), rm.twists(robot, q, v), robot.bodies, strict=True):
        R, p = pose.to_rotation_matrix(x), pose.translation(x)
        omega, c = R @ s[:3], R @ np.asarray(body.com)
        speed = R @ s[3:] + np.cross(omega, c)
        P += body.mass * speed
        L += np.cross(p + c, body.mass * speed) + R @ (np.asarray(body.inertia) @ s[:3])
    return np.concatenate([P, L])


def with_rates(robot, q, rates, kept):
    """Return v with these joint rates and the base's twist that gives the momentum."""
    rest = np.concatenate([np.zeros(6), rates])
    columns = [momentum(robot, q, np.eye(robot.nv)[k]) for k in range(6)]
    base = np.linalg.solve(np.array(columns).T, kept - momentum(robot, q, rest))
    return np.concatenate([base, rates])


def moved(robot, q, v, vdot, t):
    """Return configuration and velocity after a short time at constant vdot."""
    return rm.integrate(robot, q, t * v + 0.5 * t * t * vdot), v + t * vdot


def spot(robot, q):
    return pose.translation(rm.frame_pose(robot, q, "tool"))


def speed(robot, q, v):
    """Return the tool's velocity as a difference quotient of fourth order."""
    at = [spot(robot, rm.integrate(robot, q, k * H * v)) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * H)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["least_squares", "adjugate"])
def test_a_prescribed_reaction_follows_from_the_conservation_of_momentum(seed, method):
    """Eqs. 46 to 49 of SPART17 with momentum, from momentum alone."""
    q, v = rm.random_state(ARM, seed)
    kept = momentum(ARM, q, v)
    assert np.linalg.norm(kept) > 1.0
    assert np.allclose(kept, rm.momentum(ARM, q, v), rtol=1e-12)
    x = rm.frame_pose(ARM, q, "tool")
    wanted, turning = np.array([0.1, -0.2, 0.05]), np.array([0.02, 0.0, -0.01])
    back = quaternion.conjugate(pose.rotation(x))
    own = pose.rotation(rm.poses(ARM, q)[0])
    law = rm.control.DesiredReaction(
        "tool", rows="position", base_rows="orientation", method=method
    )
    found = values(law, ARM, q, v, {
        "pose": x, "twist": np.concatenate([np.zeros(3), quaternion.rotate(back, wanted)]),
        "base_pose": rm.poses(ARM, q)[0],
        "base_twist": np.concatenate([quaternion.rotate(quaternion.conjugate(own), turning),
                                      np.zeros(3)]),
    })  # fmt: skip
    after = with_rates(ARM, q, found["rate"], kept)
    assert np.allclose(quaternion.rotate(own, after[:3]), turning, atol=1e-9)
    assert np.allclose(speed(ARM, q, after), wanted, atol=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_a_floating_impedance_follows_from_motions(seed):
    """Λ ë + D ė + K e = -(1 + Λ J_0 H_0⁻¹J_0ᵀ) f, each term measured by pushing the robot."""
    q, v = rm.random_state(ARM, seed)
    v = 0.2 * v
    body, nv = ARM.frame("tool").body, ARM.nv
    K, D = 30.0, 12.0
    goal = pose.from_parts(
        pose.rotation(rm.frame_pose(ARM, q, "tool")), spot(ARM, q) + np.array([0.1, 0.2, -0.1])
    )
    law = rm.control.Impedance("tool", K, D, rows="position", joint_damping=0.0)
    tau = np.concatenate([np.zeros(6), values(law, ARM, q, v, {"pose": goal})["torque"]])

    def wrench(f):
        """The force at the tool, in the body's frame and about its origin."""
        own = pose.to_rotation_matrix(rm.poses(ARM, q)[body]).T @ f
        arm_ = pose.translation(ARM.frame("tool").placement)
        found = np.zeros((len(ARM.bodies), 6))
        found[body] = np.concatenate([own, np.cross(arm_, own)])
        return found

    def acceleration(vdot, speeds):
        """Second difference of the tool's position along a motion."""
        t = 1e-3
        ahead, behind = (spot(ARM, moved(ARM, q, speeds, vdot, k * t)[0]) for k in (1, -1))
        return (ahead - 2 * spot(ARM, q) + behind) / t**2

    f = np.array([3.0, -2.0, 5.0])
    still = np.zeros(nv)
    pushed = rm.forward_dynamics(ARM, q, v, tau, wrench(f))
    # Λ⁻¹: what a force does through the joints alone, τ = A' F with A' F the power per joint rate
    rates = [
        speed(ARM, q, with_rates(ARM, q, np.eye(nv - 6)[k], np.zeros(6))) for k in range(nv - 6)
    ]
    A = np.array(rates).T
    columns = [
        acceleration(
            rm.forward_dynamics(ARM, q, still, np.concatenate([np.zeros(6), A.T @ e])), still
        )
        for e in np.eye(3)
    ]
    inertia = np.linalg.inv(np.array(columns).T)
    locked, _ = rm.hybrid_dynamics(
        ARM, q, still, still, {j.name: 0.0 for j in ARM.joints[1:]}, wrench(f)
    )
    by_base = acceleration(locked, still)  # J_0 H_0⁻¹J_0ᵀ f
    error, lag = pose.translation(goal) - spot(ARM, q), -speed(ARM, q, v)
    left = inertia @ -acceleration(pushed, v) + D * lag + K * error
    assert np.allclose(left, -(f + inertia @ by_base), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_desaturation_takes_momentum_out_of_the_wheels_and_leaves_the_base_alone(count):
    """ḣ = T, the external torque, and ω̇ = 0, from forward dynamics."""
    robot = wheeled(count)
    names = tuple(f"w{i}" for i in range(count))
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[6:] = np.linspace(20.0, -5.0, count)
    wheels = rm.actuators.ReactionWheels(names, 10.0, 1e4, sample_time=0.1)

    def stored(speeds):
        """Angular momentum of the spinning wheels about their own axes, body by body."""
        spun = np.concatenate([np.zeros(6), speeds])
        bare = np.concatenate([np.zeros(6), 0.0 * speeds])
        return momentum(robot, q, spun)[3:] - momentum(robot, q, bare)[3:]

    h = values(wheels, robot, q, v, {"command": np.zeros(3)})["momentum"]
    assert np.allclose(h, stored(v[6:]), rtol=1e-12)
    gain, most = 2.0, 0.3
    law = rm.control.WheelDesaturation(gain, most, 0.01, 0.005, sample_time=0.1)
    T = values(law, robot, q, v, {"momentum": h})["torque"]
    assert np.allclose(T, np.clip(-gain * h, -most, most))
    assert h @ T < 0.0
    at = {"command": np.zeros(3), "external": T}
    exerted = values(wheels, robot, q, v, at)["torque"]
    assert np.allclose(exerted, -T, atol=1e-12)
    axes = np.array([robot.joints[n].axes[0] for n in names])
    motors = np.linalg.lstsq(axes.T, T, rcond=None)[0]  # of all that exert -T, the least
    tau = np.concatenate([T, np.zeros(3), motors])
    vdot = rm.forward_dynamics(robot, q, v, tau)
    assert np.allclose(vdot[:6], 0.0, atol=1e-12)
    assert np.allclose(stored(vdot[6:]), T, atol=1e-12)
