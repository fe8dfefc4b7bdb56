"""Orbits: against Kepler, Clohessy and Wiltshire, secular rates, conservation laws and Basilisk."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import needs
import remora as rm
from c_structs import built_test, verdict
from numeric import assert_close
from remora.algebra import pose, quaternion
from remora.algebra.exact_difference import Pair, same
from remora.world.gravity import EARTH_ZONALS, gravity, gravity_gradient, potential
from remora.world.kepler import element_names, lvlh_rate

BUS = (
    rm.Builder("bus").body("bus", 500.0, com=(0.1, -0.2, 0.05), inertia=(100.0, 80.0, 60.0))
    .joint("base", "free", None, "bus").build()
)  # fmt: skip
FINE = rm.Integrator("dop853", rtol=1e-13, atol=1e-15)
ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracle" / "basilisk_orbit.json"


def elements(orbit):
    return [getattr(orbit, name) for name in element_names()]


def at_centre(robot, x, xdot):
    """Return q and v of a robot in its neutral attitude with its centre of mass at x."""
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    p = np.asarray(x) - rm.center_of_mass(robot, q)
    q[:8], v[3:6] = pose.from_parts(q[:4], p), xdot
    return q, v


def in_orbit(orbit, robot=BUS, q=None, v=None, duration=None, **options):
    q = at_centre(robot, (0, 0, 0), (0, 0, 0))[0] if q is None else q
    v = np.zeros(robot.nv) if v is None else v
    duration = orbit.period if duration is None else duration
    return rm.simulate(
        rm.System(robot, [orbit]), q, v, duration,
        **{"integrator": FINE, "record": duration / 20, **options},
    )  # fmt: skip


# The field ----------------------------------------------------------------------------------------


def textbook_gravity(r, mu, radius, J):
    """Return the acceleration of a point mass with J2 and J3, written out."""
    size = np.linalg.norm(r)
    s, unit, pole = r[2] / size, r / size, np.array([0, 0, 1.0])
    g = -mu / size**2 * unit
    g += 1.5 * J[0] * mu * radius**2 / size**4 * ((5 * s * s - 1) * unit - 2 * s * pole)
    third = (35 * s**3 - 15 * s) / 2 * unit - (15 * s * s - 3) / 2 * pole
    return g + J[1] * mu * radius**3 / size**5 * third


def test_gravity_is_that_of_the_textbook(rng):
    for _ in range(20):
        r = rng.normal(size=3)
        r *= rng.uniform(1.0, 3.0) / np.linalg.norm(r)
        J = np.array([0.1, -0.05])
        assert_close(gravity(same(r), 2.0, 0.9, J).start, textbook_gravity(r, 2.0, 0.9, J))


def test_gravity_is_the_gradient_of_the_potential(rng):
    J = np.array([0.1, -0.05, 0.03, 0.02, -0.04])
    r = rng.normal(size=(50, 3))
    r *= (rng.uniform(1.0, 3.0, 50) / np.linalg.norm(r, axis=-1))[:, None]
    h, numeric = 1e-6, np.zeros_like(r)
    for k in range(3):
        step = np.zeros(3)
        step[k] = h
        both = [potential(Pair(r, sign * step + 0 * r), 2.0, 0.9, J).change for sign in (1, -1)]
        numeric[:, k] = ((both[0] - both[1]) / (2 * h))[:, 0]
    assert_close(gravity(same(r), 2.0, 0.9, J).start, numeric, 1e-9)  # of differences


def test_differences_are_exact_at_any_distance(rng):
    """Changes over 1e-6 to 1e7 m agree with the gradient, or with differences."""
    R, J = np.array([5e6, -4e6, 3e6]), np.array(EARTH_ZONALS)
    far = Pair(R, np.array([3e6, 4e6, 5e6]))
    g = gravity(far, 4e14, 6.4e6, J)
    assert_close(g.change, gravity(same(far.end), 4e14, 6.4e6, J).start - g.start)
    along = rng.normal(size=3)
    small = gravity(Pair(R, 1e-6 * along), 4e14, 6.4e6, J).change
    smaller = gravity(Pair(R, 5e-7 * along), 4e14, 6.4e6, J).change
    assert_close(small, 2.0 * smaller, 1e-12)  # nonlinear terms are 1e-13
    size = np.linalg.norm(R)
    tide = -4e14 / size**3 * (along - 3.0 * R * (R @ along) / size**2)
    point = gravity(Pair(R, 1e-6 * along), 4e14, 6.4e6, np.zeros(0)).change
    assert_close(point, 1e-6 * tide, 1e-12)


def test_the_gradient_is_that_of_point_masses(rng):
    """Torque and force of a cloud of points, to third order in its size."""
    points, masses = rng.normal(size=(6, 3)), rng.uniform(1.0, 2.0, 6)
    points -= masses @ points / masses.sum()
    far = 3e3 * np.array([0.6, -0.5, 0.62449979983984])
    inertia = sum(
        m * ((p @ p) * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True)
    )
    change = gravity(Pair(far + 0 * points, points), 1.0, 1.0, np.zeros(0)).change
    torque, force = gravity_gradient(far, inertia, 1.0)
    pull = masses[:, None] * change
    assert_close(torque, np.cross(points, pull).sum(axis=0), 3e-3)  # next order: size / distance
    assert_close(force, pull.sum(axis=0), 3e-3)


# Elements -----------------------------------------------------------------------------------------


def test_elements_and_states_are_inverse(rng):
    for _ in range(50):
        given = [
            rng.uniform(7e6, 5e7), rng.uniform(0.001, 0.9), rng.uniform(0.01, 3.1),
            *rng.uniform(0, 2 * np.pi, 3),
        ]  # fmt: skip
        r, v = rm.world.orbit_state(*given, 4e14)
        found = rm.world.orbital_elements(r, v, 4e14)
        back = [getattr(found, name) for name in element_names()]
        off = (np.array(back) - given) / np.maximum(np.abs(given), 1.0)
        assert np.abs(off).max() < 1e-11  # angles of nearly circular orbits lose digits
        again = rm.world.orbit_state(*back, 4e14)
        assert_close(np.concatenate([again[0] / 1e7, again[1] / 1e4]),
                     np.concatenate([r / 1e7, v / 1e4]), 1e-11)  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        (7e6, 0, 0, 0, 0, 2.0),
        (7e6, 0, 1.0, 2.0, 0, 3.0),
        (7e6, 0.1, 0, 0, 1.0, 2.0),
        (7e6, 0.1, np.pi, 0, 1.0, 2.0),
    ],
)
def test_singular_elements_give_the_state_back(given):
    r, v = rm.world.orbit_state(*given, 4e14)
    found = rm.world.orbital_elements(r, v, 4e14)
    again = rm.world.orbit_state(*(getattr(found, n) for n in element_names()), 4e14)
    assert_close(np.array(again[0]), np.array(r), 1e-9)
    assert_close(np.array(again[1]), np.array(v), 1e-9)


def test_states_without_elements_are_refused():
    for r, v, mu, told in (
        ([7e6, 0, 0], [0, 7e3, 0], -1.0, "mu"),
        ([0, 0, 0], [0, 7e3, 0], 4e14, "parallel, or zero"),
        ([[7e6, 0, 0], [0, 7e6, 0]], [0, 7e3, 0], 4e14, "parallel"),
    ):
        with pytest.raises(rm.RemoraError, match=told):
            rm.world.orbital_elements(r, v, mu)


def test_axes_of_lists():
    assert_close(rm.world.radial_axes([7e6, 0, 0], [0, 7e3, 0]), np.eye(3))
    down = quaternion.rotate(rm.world.lvlh_rotation([7e6, 0, 0], [0, 7e3, 0]), np.array([0, 0, 1]))
    assert_close(down, [-1.0, 0.0, 0.0])


def test_angles_are_below_a_turn():
    """The remainder of an angle just below zero is rounded to 2π."""
    for nu in (1.0, 4.0, 6.28):
        r, v = rm.world.orbit_state(7e6, 0.0, 1.0, 0.0, 2.0, nu, 4e14)
        found = rm.world.orbital_elements(r, v, 4e14)
        for angle in (found.node, found.periapsis, found.anomaly):
            assert 0.0 <= angle < 2.0 * np.pi


def test_true_anomaly_solves_keplers_equation(rng):
    e = np.concatenate([rng.uniform(0, 1, 500), [0.0, 0.999999]])
    M = rng.uniform(-20, 20, e.size)
    nu = rm.world.true_anomaly(M, e)
    E = 2.0 * np.arctan(np.sqrt((1 - e) / (1 + e)) * np.tan(nu / 2.0))
    off = E - e * np.sin(E) - M
    off -= 2 * np.pi * np.round(off / (2 * np.pi))
    assert np.max(np.abs(off) * np.sqrt(1 - e)) < 1e-12  # tan amplifies rounding near e = 1
    assert np.all(np.abs(nu - M) <= np.pi)  # in the same turn
    with pytest.raises(rm.RemoraError, match="below 1"):
        rm.world.true_anomaly(1.0, 1.0)


# Motion -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eccentricity", [0.0, 0.1, 0.3])
def test_kepler_orbits_close(eccentricity):
    """After ten periods to 1e-6 m: 1e-13 of the radius, with steps that keep rounding small."""
    orbit = rm.world.Orbit(
        semi_major_axis=1e7, eccentricity=eccentricity, inclination=0.9, degree=0
    )
    fine = rm.Integrator("dop853", rtol=1e-14, atol=1e-15, max_step=5.0)
    run = in_orbit(orbit, duration=10 * orbit.period, integrator=fine)
    place = run.signals["orbit.position"]
    assert np.linalg.norm(place[-1] - place[0]) < 1e-6
    halves = run.t / orbit.period
    nu = rm.world.true_anomaly(2 * np.pi * halves, eccentricity)
    r, _ = rm.world.orbit_state(*elements(orbit)[:5], nu, orbit.mu)
    assert np.abs(r - place).max() < 1e-6


def test_small_separations_are_those_of_clohessy_and_wiltshire():
    """To 1e-9 m over an orbit; the equations neglect terms of 1e-12 m."""
    orbit = rm.world.Orbit(
        altitude=500e3, inclination=0.9, node=0.3, anomaly=1.0, degree=0, gradient="none"
    )
    n = 2 * np.pi / orbit.period
    axes = rm.world.radial_axes(*orbit.start)
    x, y, z = start = np.array([1e-3, 2e-3, -1e-3])
    xd, yd, zd = rate = np.array([1e-6, -2e-6, 0.5e-6])
    state = at_centre(BUS, axes @ start, axes @ (rate + np.cross([0, 0, n], start)))
    run = in_orbit(orbit, BUS, *state)
    s, c = np.sin(n * run.t), np.cos(n * run.t)
    expected = [
        (4 - 3 * c) * x + s / n * xd + 2 / n * (1 - c) * yd,
        6 * (s - n * run.t) * x + y - 2 / n * (1 - c) * xd + (4 * s - 3 * n * run.t) / n * yd,
        z * c + zd / n * s,
    ]
    axes = rm.world.radial_axes(run.signals["orbit.position"], run.signals["orbit.velocity"])
    found = np.einsum("nji,nj->ni", axes, rm.center_of_mass(BUS, run.q))
    assert np.abs(found - np.transpose(expected)).max() < 1e-9


def test_nodes_and_periapsis_turn_at_the_secular_rates_of_j2():
    """First-order theory, of means over orbits: to 0.5 %, since it neglects terms of J2²."""
    orbit = rm.world.Orbit(semi_major_axis=1e7, eccentricity=0.2, inclination=1.3)
    run = in_orbit(orbit, duration=20 * orbit.period, record=orbit.period / 200)
    found = rm.world.orbital_elements(
        run.signals["orbit.position"], run.signals["orbit.velocity"], orbit.mu
    )
    n, J2 = 2 * np.pi / orbit.period, orbit.zonals[0]
    p = orbit.semi_major_axis * (1 - orbit.eccentricity**2)
    rate = 1.5 * J2 * n * (orbit.radius / p) ** 2

    def secular(angle):
        mean = np.unwrap(angle)[:-1].reshape(20, 200).mean(axis=1)
        return (mean[-1] - mean[0]) / (19 * orbit.period)

    assert secular(found.node) == pytest.approx(-rate * np.cos(1.3), rel=5e-3)
    expected = rate * (2 - 2.5 * np.sin(1.3) ** 2)
    assert secular(found.periapsis) == pytest.approx(expected, rel=2e-2)


@pytest.mark.parametrize("degree", [0, 2, 6])
def test_a_free_arm_conserves_energy_and_angular_momentum(degree):
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 3)
    q[:8] = pose.from_parts(q[:4], np.array([30.0, -20.0, 10.0]))
    orbit = rm.world.Orbit(altitude=500e3, inclination=0.9, eccentricity=0.01, degree=degree)
    run = in_orbit(
        orbit, robot, q, 1e-2 * v, 3000.0, physics=rm.Physics(limits="ignore"),
    )  # fmt: skip
    at = robot, run.q, run.v, run.signals["orbit.position"], run.signals["orbit.velocity"]
    energy, momentum = orbit.energy(*at), orbit.angular_momentum(*at)
    assert np.ptp(energy) < 1e-12 * np.abs(energy).max()
    kept = slice(None) if degree == 0 else slice(2, 3)
    assert np.ptp(momentum[:, kept], axis=0).max() < 1e-12 * np.abs(momentum).max()


def test_against_positions_from_the_planets_centre():
    """A tumbling body 2 km from the origin, integrated by SciPy with r of 7e6 m: 1e-5 m of 1e7."""
    orbit = rm.world.Orbit(altitude=700e3, inclination=1.0, eccentricity=0.02, gradient="torque")
    q, v = at_centre(BUS, (1e3, -1.5e3, 800.0), (0.5, 0.2, -0.8))
    v[:3] = 0.02, 1e-3, 2e-3  # about the axis of largest inertia: errors do not grow
    v[3:] += np.cross(v[:3], -BUS.bodies[0].com)
    run = in_orbit(orbit, BUS, q, v)
    R, V = orbit.start
    inertia = BUS.bodies[0].inertia

    def rates(t, y):
        r, v, a, omega = np.split(y, [3, 6, 10])
        below = quaternion.rotate(quaternion.conjugate(a), r)
        torque = 3 * orbit.mu / np.linalg.norm(r) ** 5 * np.cross(below, inertia @ below)
        turn = np.linalg.solve(inertia, torque - np.cross(omega, inertia @ omega))
        spin = 0.5 * quaternion.mul(a, quaternion.pure(omega))
        return np.concatenate([
            v, textbook_gravity(r, orbit.mu, orbit.radius, [orbit.zonals[0], 0.0]), spin, turn,
        ])  # fmt: skip

    c = rm.center_of_mass(BUS, run.q)
    rate = rm.momentum(BUS, q, v)[:3] / 500.0
    y = np.concatenate([R + c[0], V + rate, q[:4], v[:3]])
    end = solve_ivp(rates, (0, run.t[-1]), y, "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    assert np.abs(run.signals["orbit.position"][-1] + c[-1] - end[:3]).max() < 1e-5
    # at m/s from the origin, v × m v has rounding errors of 1e-13 N m: 1e-11 rad/s in the end
    assert np.abs(run.v[-1, :3] - end[10:]).max() < 1e-10
    assert np.abs(run.q[-1, :4] - end[6:10]).max() < 1e-7


@pytest.mark.skipif(not ORACLE.exists(), reason=needs.ORACLE_NEED)
@pytest.mark.parametrize("key", ["trajectory", "without_J2_and_gradient"])
def test_basilisk(key):
    told = json.loads(ORACLE.read_text())
    given, start, expected = told["parameters"], told["initial"], told[key]

    def attitude(sigma):
        square = np.sum(np.square(sigma), axis=-1, keepdims=True)
        return np.concatenate([1 - square, 2 * np.asarray(sigma)], axis=-1) / (1 + square)

    robot = rm.Builder("b").body("b", given["mass"], inertia=given["inertia_about_com_B"])
    robot = robot.joint("base", "free", None, "b").build()
    full = key == "trajectory"
    orbit = rm.world.Orbit(
        position=start["r_CN_N"], velocity=start["v_CN_N"], mu=given["mu"],
        radius=given["radius"], zonals=[given["J2"], 0, 0, 0, 0], degree=2 if full else 0,
        gradient="torque" if full else "none",
    )  # fmt: skip
    q, v = rm.neutral(robot), np.zeros(6)
    q[:4], v[:3] = attitude(start["sigma_BN"]), start["omega_BN_B"]
    run = in_orbit(orbit, robot, q, v, expected["t"][-1], record=expected["t"])
    place = run.signals["orbit.position"] + rm.center_of_mass(robot, run.q)
    # Basilisk's fixed steps, without J2: 2.5e-6 m from SciPy (README of the oracle)
    assert np.abs(place - expected["r_CN_N"]).max() < (1e-6 if full else 3e-6)
    there = attitude(expected["sigma_BN"])
    off = 2.0 * (1.0 - np.abs(np.sum(there * run.q[:, :4], axis=-1)))
    assert off.max() < 1e-14
    assert np.abs(run.v[:, :3] - expected["omega_BN_B"]).max() < 1e-12


def test_lvlh_axes_and_their_rate():
    orbit = rm.world.Orbit(altitude=500e3, inclination=0.9, eccentricity=0.2, anomaly=1.0)
    run = in_orbit(orbit, duration=10.0, record=0.01)
    R, V = run.signals["orbit.position"], run.signals["orbit.velocity"]
    axes = quaternion.to_matrix(run.signals["orbit.lvlh"])
    assert_close(axes[..., 2], -R / np.linalg.norm(R, axis=-1)[:, None])
    assert np.abs(np.sum(axes[..., 1] * V, axis=-1)).max() < 1e-9
    assert np.all(np.sum(axes[..., 0] * V, axis=-1) > 0)
    turned = quaternion.mul(quaternion.conjugate(run.signals["orbit.lvlh"][:-2]),
                            run.signals["orbit.lvlh"][2:])  # fmt: skip
    numeric = 2.0 * quaternion.log(quaternion.shortest(turned)) / 0.02
    assert_close(run.signals["orbit.lvlh_rate"][1:-1], numeric, 1e-6)  # of central differences
    g = gravity(same(R), orbit.mu, orbit.radius, orbit.zonals[:1]).start
    assert_close(run.signals["orbit.lvlh_rate"], lvlh_rate(R, V, g))


# Everywhere ---------------------------------------------------------------------------------------


def test_default_tolerances_take_few_steps():
    orbit = rm.world.Orbit(altitude=500e3, inclination=0.9)
    v = np.array([1e-3, 2e-3, -1e-3, 0.0, 0.0, 0.0])
    run = in_orbit(orbit, v=v, integrator=rm.Integrator(max_steps=200))
    assert run.status == "complete"


def test_a_batch_with_dispersed_orbits_equals_its_runs():
    robot = rm.load("servicer")
    orbit = rm.world.Orbit(altitude=500e3, inclination=0.9)
    system = rm.System(robot, [orbit])
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[6:] = 1e-3
    parameters = {
        "orbit.eccentricity": np.array([0.0, 0.01, 0.02]),
        "orbit.anomaly": np.array([0.1, 0.2, 0.3]),
        "bus.mass": np.array([300.0, 400.0, 500.0]),
    }
    how = {"integrator": FINE, "record": 100.0}
    batch = rm.simulate_batch(system, q, v, 600.0, runs=rm.Runs(parameters=parameters), **how)
    for k in range(3):
        one = system.with_parameters({name: x[k] for name, x in parameters.items()})
        run = rm.simulate(one, q, v, 600.0, **how)
        assert_close(batch.signals["orbit.position"][k], run.signals["orbit.position"])
        assert np.abs(batch.q[k] - run.q).max() < 1e-10
        start = np.linalg.norm(run.signals["orbit.position"][0])
        e, nu = parameters["orbit.eccentricity"][k], parameters["orbit.anomaly"][k]
        a = orbit.semi_major_axis
        assert start == pytest.approx(a * (1 - e * e) / (1 + e * np.cos(nu)), rel=1e-14)


@pytest.mark.parametrize("gradient", ["full", "torque", "none"])
def test_all_numbers_of_the_planet_and_orbit_can_differ_by_run(gradient):
    orbit = rm.world.Orbit(altitude=500e3, inclination=0.9, gradient=gradient, felt_at="bus")
    system = rm.System(BUS, [orbit])
    q, v = at_centre(BUS, (30.0, -20.0, 10.0), (0.1, 0.0, 0.2))
    how = {"integrator": rm.Integrator("rk4", step=5.0), "record": 50.0}
    parameters = {
        "orbit.mu": [3.9e14, 4.1e14], "orbit.radius": [6.3e6, 6.4e6],
        "orbit.semi_major_axis": [7e6, 7.2e6], "orbit.zonals": orbit.zonals * [[0.9], [1.1]],
    }  # fmt: skip
    for name, values in parameters.items():
        runs = rm.Runs(parameters={name: np.asarray(values)})
        batch = rm.simulate_batch(system, q, v, 100.0, runs=runs, **how)
        ends = batch.signals["orbit.position"][:, -1]
        assert np.abs(ends[0] - ends[1]).max() > 1e-3
        for k in range(2):
            run = rm.simulate(system.with_parameters({name: values[k]}), q, v, 100.0, **how)
            assert np.abs(batch.q[k] - run.q).max() < 1e-9  # rounding of v × m v
            for key in ("orbit.position", "orbit.velocity", "orbit.gravity_bus"):
                assert_close(batch.signals[key][k], run.signals[key], 1e-10)


@needs.compiler
def test_the_exported_component_has_the_bits_of_python(tmp_path):
    orbit = rm.world.Orbit(altitude=500e3, inclination=0.9, degree=6)
    rm.save_component_c(rm.System(BUS, [orbit]), "orbit", tmp_path)
    assert verdict(built_test(tmp_path, "orbit", "-O2")) == (0, 0, "good")


def test_accelerometers_in_orbit_measure_no_gravity():
    """In free fall at 500 m from the origin, off the centre of mass: ω × (ω × r) + ω̇ × r."""
    r = np.array([0.5, 0.2, -0.3])
    robot = rm.Builder("bus").body("bus", 500.0, inertia=(100.0, 80.0, 60.0))
    robot = robot.joint("base", "free", None, "bus").frame("imu/a", "bus", xyz=r).build()
    orbit = rm.world.Orbit(altitude=500e3, inclination=0.9, felt_at="imu/a", gradient="none")
    sensor = rm.sensors.Accelerometer("imu/a", sample_time=1.0)
    connect = {"accelerometer.gravity": "orbit.gravity_imu_a"}
    q, v = at_centre(robot, (300.0, -400.0, 0.0), (0.1, 0.2, 0.3))
    v[:3] = omega = np.array([0.01, -0.02, 0.03])
    system = rm.System(robot, [orbit, sensor], connect)
    run = rm.simulate(system, q, v, 1.0, integrator=FINE, record=1.0)
    inertia = robot.bodies[0].inertia
    rate = np.linalg.solve(inertia, -np.cross(omega, inertia @ omega))
    found = run.signals["accelerometer.specific_force"][0]
    tide = run.signals["orbit.gravity_imu_a"][0]
    expected = np.cross(rate, r) + np.cross(omega, np.cross(omega, r))
    # gravity at the frame and at the centre of mass differ
    R, c = orbit.start[0], np.array([300.0, -400.0, 0.0])
    near = gravity(Pair(R + c, r), orbit.mu, orbit.radius, orbit.zonals[:1]).change
    assert np.linalg.norm(tide) > 1e-4
    assert np.abs(found - (expected - near)).max() < 1e-15


def test_orbits_in_scenario_files(tmp_path):
    file = tmp_path / "orbit.yaml"
    file.write_text(
        "scenario: 1\nrobot: servicer\ncomponents:\n"
        "  - {type: orbit, altitude: 500e3, inclination: 51.6 deg, degree: 6}\n"
        "phases:\n  - {name: coast, duration: 60}\n"
    )
    run = rm.load_scenario(file).run()
    start = rm.world.Orbit(altitude=500e3, inclination=np.radians(51.6))
    assert_close(run.signals["orbit.position"][0], start.start[0])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "one of semi_major_axis, altitude, or position"),
        ({"altitude": 5e5, "semi_major_axis": 7e6}, "semi_major_axis and altitude"),
        ({"position": (7e6, 0, 0)}, "position with velocity"),
        ({"altitude": 500.0}, "is it in km"),
        ({"semi_major_axis": 6878.0}, "is it in km"),
        ({"position": (6878.0, 0, 0), "velocity": (0, 7600, 0)}, "is it in km"),
        ({"position": (6878e3, 0, 0), "velocity": (0, 7.6, 0)}, "is it in km/s"),
        ({"position": (7e6, 0, 0), "velocity": (0, 7546, 0), "node": 1.0}, "has no node"),
        ({"position": (7e6, 0, 0), "velocity": (0, 12e3, 0)}, "must be closed"),
        ({"position": (7e6, 0, 0), "velocity": (0, 5e3, 0)}, "meets the planet"),
        ({"position": (7e6, 0, 0), "velocity": (1e3, 0, 0)}, "must not be parallel"),
        ({"position": (0, 0, 0), "velocity": (0, 7e3, 0)}, "must not be parallel, or zero"),
        ({"altitude": 5e5, "eccentricity": 1.0}, "below 1"),
        ({"semi_major_axis": 7e6, "eccentricity": 0.2}, "meets the planet"),
        ({"altitude": 5e5, "inclination": 51.6}, "at most 3.14"),
        ({"altitude": 5e5, "degree": 7}, "from 0 to 6"),
        ({"altitude": float("nan")}, "altitude"),
        ({"altitude": 5e5, "gradient": "half"}, "torque"),
        ({"altitude": 5e5, "sample_time": 1.0}, "no sample_time"),
    ],
)
def test_refusals(options, told):
    with pytest.raises(rm.RemoraError, match=told):
        rm.world.Orbit(**options)


def test_orbits_of_small_bodies_are_slow():
    """An asteroid of 8 km, about which one moves at 3.5 m/s: these are not km/s."""
    given = {"position": (35e3, 0, 0), "velocity": (0, 3.5, 0)}
    orbit = rm.world.Orbit(**given, mu=4.463e5, radius=8.4e3, degree=0)
    assert_close(orbit.start[1], given["velocity"])


@pytest.mark.parametrize("eccentricity", [-0.01, 0.5])
def test_dispersed_orbits_that_cannot_be_are_refused(eccentricity):
    system = rm.System(BUS, [rm.world.Orbit(altitude=5e5)])
    runs = rm.Runs(parameters={"orbit.eccentricity": np.array([0.0, eccentricity])})
    how = {"integrator": rm.Integrator("rk4", step=0.5), "runs": runs}
    with pytest.raises(rm.RemoraError, match=r"an orbit must be closed|the orbit meets the planet"):
        rm.simulate_batch(system, rm.neutral(BUS), np.zeros(6), 1.0, **how)


def test_two_orbits_would_be_twice_the_gravity():
    both = [rm.world.Orbit(altitude=h, name=name) for h, name in ((5e5, "low"), (6e5, "high"))]
    with pytest.raises(rm.RemoraError, match="'low' is an orbit, too: a system has one at most"):
        rm.System(BUS, both)


def test_uniform_gravity_beside_an_orbit_is_refused():
    robot = rm.load("servicer", gravity=(0, 0, -9.81))
    with pytest.raises(rm.RemoraError, match="gravity \\(0, 0, 0\\)"):
        rm.System(robot, [rm.world.Orbit(altitude=5e5)])
