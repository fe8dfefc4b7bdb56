"""DM93's Figure 3 and its goal: planar arms that hold a workpiece, in dual quaternion coordinates.

One 2R arm and the workpiece are an open chain. A second arm that grips the other end closes it: its
grip adds rows to Φ of (30). The coordinates Q of all bodies are integrated and projected onto the
constraints. docs/pictures/make_dm93.py draws the run.
"""

import numpy as np

import remora as rm

dm93 = rm.papers.dm93
UPPER, LOWER, WORK = (1.0, 3.0), (0.8, 2.0), (0.8, 4.0)  # length, m, and mass, kg
STEP, DURATION = 2e-3, 1.0  # s


def arms(hands):
    """Two planar 2R arms and a workpiece, gripped by a pin in each of these hands."""
    make = rm.Builder("cooperating arms", gravity=(0, -9.81, 0))

    def bar(name, length, mass):
        moment = mass * length**2 / 12
        make.body(name, mass, com=(length / 2, 0, 0), inertia=(0.01, moment, moment))

    for side, x in (("left", 0.0), ("right", 1.8)):
        bar(f"{side} upper", *UPPER)
        bar(f"{side} lower", *LOWER)
        elbow = f"{side} upper", f"{side} lower"
        make.joint(f"{side} shoulder", "revolute", None, elbow[0], xyz=(x, 0, 0), axis=(0, 0, 1))
        make.joint(f"{side} elbow", "revolute", *elbow, xyz=(UPPER[0], 0, 0), axis=(0, 0, 1))
    bar("workpiece", *WORK)
    make.joint("plane", "planar", None, "workpiece", axis=(0, 0, 1))
    for side in hands:
        ends = {"parent_xyz": (LOWER[0], 0, 0), "child_xyz": (WORK[0] * (side == "right"), 0, 0)}
        pin = f"{side} grip", "revolute", f"{side} lower", "workpiece"
        make.constraint(*pin, **ends, axis=(0, 0, 1))
    return make.build(base=None)


def integrated(robot, Q, rate, project):
    """Q and its rate at all steps of the classical Runge-Kutta method."""

    def acceleration(robot, Q, Q_rate):
        return dm93.image_space_solution(robot, Q, Q_rate, np.zeros(robot.nv)).acceleration

    second = rm.compile(acceleration, robot, shapes={"Q": Q.shape, "Q_rate": Q.shape})
    slope = lambda x: np.stack([x[1], second(x[0], x[1])])  # noqa: E731
    path = [np.stack([Q, rate])]
    for n in range(round(DURATION / STEP)):
        x = path[-1]
        k1 = slope(x)
        k2 = slope(x + STEP / 2 * k1)
        k3 = slope(x + STEP / 2 * k2)
        x = x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + STEP * k3))
        if project and n % 10 == 9:
            x = np.stack(dm93.project_image_coordinates(robot, *x, iterations=2))
        path.append(x)
    return np.array(path)


def violation(robot, Q):
    g = dm93.image_space_constraints(robot, Q)
    return np.abs(np.concatenate([g.unit.reshape(len(Q), -1), g.joints, g.loops], -1)).max(-1)


robot = arms(["left", "right"])
q, v = rm.close_loops(robot, [1.9, -1.3, 1.2, 1.3, 0.5, 1.2, 0.0])  # at rest, above the shoulders
Q, rate = dm93.image_coordinates(robot, q), dm93.image_rates(robot, q, v)
idle = np.zeros(robot.nv)
for hands in (["left"], ["left", "right"]):
    some = arms(hands)
    system = dm93.image_space_system(some, Q, rate, idle)
    found = dm93.image_space_solution(some, Q, rate, idle)
    rank, freedoms = np.linalg.matrix_rank(system.Phi), rm.loops.constraint_report(some, q).freedoms
    print(f"{' and '.join(hands)} arm: Φ {system.Phi.shape}, rank {rank}; {freedoms} freedoms")
    print("  forces on the workpiece", *found.constraint_wrenches[:, :2].round(3), "N")
    vt18 = rm.reaction_wrenches(some, q, v, idle, formulation="newton_euler")
    print("  the reactions are VT18's:", np.allclose(found.reactions, vt18, atol=1e-10))

# what torques do three joints need for a prescribed motion of the closed chain?
moved = {"left shoulder": 0.5, "left elbow": 0.0, "right shoulder": -0.2}
by_image = dm93.image_space_solution(robot, Q, rate, idle, prescribed=moved).tau
print("torques", *(f"{by_image[robot.joints[name].v][0]:.3f}" for name in moved), "N m")
print("  the same:", np.allclose(by_image, rm.hybrid_dynamics(robot, q, v, idle, moved)[1]))

paths = [integrated(robot, Q, rate, project) for project in (True, False)]  # the arms swing
off = [violation(robot, path[:, 0]) for path in paths]
print("off the constraints by less than 1e-6:", off[0].max() < 1e-6, "more without projection:",
      off[1][-1] > 10 * off[0][-1])  # fmt: skip
end = dm93.project_image_coordinates(robot, *paths[0][-1])
run = rm.simulate(robot, q, v, DURATION, integrator=rm.Integrator(rtol=1e-11, atol=1e-11))
q_end, v_end = dm93.from_image_coordinates(robot, *end)
print("articulated bodies end there, to 1e-4:", np.abs(v_end - run.v[-1]).max() < 1e-4)
E = [
    rm.kinetic_energy(robot, *x) + rm.potential_energy(robot, x[0])
    for x in ((q, v), (q_end, v_end))
]
print("energy conserved to 1e-5:", abs(E[1] - E[0]) < 1e-5 * abs(E[0]))
