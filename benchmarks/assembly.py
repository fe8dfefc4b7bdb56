"""Separately compiled modules against the kernel of the whole robot, as ratios in one process.

    python benchmarks/assembly.py

The robot is SA24's branched manipulator: eight modules of three joints. Then chains and trees of up
to 10,000 modules, to show that the cost per module stays the same until memory is the limit, and
what it costs that a module docks to a tree of up to 1,000. Last, a tick of runs with black boxes
and with docked modules.
"""

import time

import numpy as np

import remora as rm

CONNECTIONS = [
    ("2", "1", "link2"), ("3", "1", "link1"), ("5", "1", "link2"), ("7", "1", "link1"),
    ("4", "2", "link3"), ("6", "5", "link3"), ("8", "7", "link3"),
]  # fmt: skip
POSE = rm.algebra.pose


def arm(joints=3):
    b = rm.Builder("arm")
    for k in range(1, joints + 1):
        b.body(f"link{k}", 1.0, (0.0, 0.02, 0.2), 0.1 * np.eye(3))
        axis = (0, 0, 1) if k == 1 and joints > 1 else (0, 1, 0)
        parent = f"link{k - 1}" if k > 1 else None
        place = POSE.from_xyz_rpy((0, 0, 0.3))
        b.joint(f"joint{k}", "revolute", parent, f"link{k}", axis=axis, placement=place)
    return b.build()


def best(repeats, function, *arguments):
    function(*arguments)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def modules_against_the_whole():
    assembly = rm.Assembly(dict.fromkeys(map(str, range(1, 9)), arm()), CONNECTIONS)
    robot, fast = assembly.to_robot(), assembly.compile()
    whole = rm.compile(robot)
    print("states  function           composed    whole   ratio   (µs per state)")
    for states in (1, 64, 4096):
        q, v = assembly.random_state(1, () if states == 1 else (states,))
        w = 2.0 * v
        for name in ("forward_dynamics", "inverse_dynamics"):
            one, other = getattr(fast, name), getattr(whole, name)
            pairs = [(best(20, one, q, v, w), best(20, other, q, v, w)) for _ in range(7)]
            a, b = (min(pair[k] for pair in pairs) / states * 1e6 for k in range(2))
            print(f"{states:6d}  {name:17s} {a:9.3f} {b:8.3f}  {a / b:6.2f}")


def cost_per_module():
    print("modules  shape  µs per module and state: forward, inverse of one state; of eight")
    link = arm(1)
    for count in (10, 100, 1000, 10_000):
        for shape, parent in (("chain", lambda k: k - 1), ("tree", lambda k: (k - 1) // 2)):
            names = [f"m{k}" for k in range(count)]
            links = [(names[k], names[parent(k)], "link1") for k in range(1, count)]
            fast = rm.Assembly(dict.fromkeys(names, link), links).compile()
            costs = [
                best(9, f, *[np.zeros((states, count))] * 3) / count / states * 1e6
                for states in (1, 8)
                for f in (fast.forward_dynamics, fast.inverse_dynamics)
            ]
            print(f"{count:7d}  {shape:5s}  " + "  ".join(f"{cost:.3f}" for cost in costs))


def unit():
    b = rm.Builder("unit").body("hub", 5.0, (0, 0, 0.1), np.diag([0.4, 0.5, 0.6]))
    b.body("arm", 1.0, (0, 0, 0.2), np.diag([0.1, 0.1, 0.05])).joint("base", "free", None, "hub")
    b.joint("turn", "revolute", "hub", "arm", axis=(0, 1, 0), xyz=(0, 0, 0.5))
    return b.frame("p0", "arm", xyz=(0, 0, 0.4)).frame("p1", "hub", xyz=(0.5, 0, 0)).build()


def cost_of_a_change():
    print("modules  depth  µs: dock without, with an impulse, undock; forward dynamics")
    one = unit()
    for count in (10, 100, 1000):
        names = [f"m{k}" for k in range(count)]
        docks = [(names[k], names[(k - 1) // 2], f"p{(k - 1) % 2}") for k in range(1, count)]
        robot = rm.ModularRobot({**dict.fromkeys(names, one), "new": one}, docks)
        dock = rm.papers.sa24.Connection("new", names[-1], "p0")
        v = np.random.default_rng(0).normal(size=robot.nv) * 0.1
        network = robot.network(robot.neutral(), v, [dock])
        i, seat, x = network.index["new"], robot.seat_in(network, dock), robot.placement(dock)
        at = robot.v_of("new").start
        network.rest()
        times = {"soft": [], "hard": [], "undock": []}
        for _ in range(20):
            for kind, speed in (("soft", 0.0), ("hard", 0.1)):
                network.place(i, seat, x)
                network.v[at] += speed
                start = time.perf_counter()
                network.dock(i, seat, x)
                times[kind].append(time.perf_counter() - start)
                start = time.perf_counter()
                network.undock(i)
                times["undock"].append(time.perf_counter() - start)
        state = network.q.copy(), network.v.copy(), np.zeros(robot.nv)
        costs = [min(t) for t in times.values()] + [best(9, network.forward_dynamics, *state)]
        depth = len(network.order.path(seat.parent))
        print(f"{count:7d}  {depth:5d}  " + "  ".join(f"{1e6 * cost:.0f}" for cost in costs))


def answer(t, base):
    still = rm.papers.sa24.PointReading(np.zeros(6), np.zeros(6), POSE.from_xyz_rpy((0, 0, 0)))
    return rm.papers.sa24.SensorReading(0.01 * base.twist, {"link3_dh": still}, time=t)


def cost_of_a_tick():
    print("µs per tick of rm.simulate_assembly at 100 Hz, one step of RK4; s of the first run")
    branched, one = rm.load_assembly("sa24_branched"), unit()
    box = rm.BlackBox(lambda t, base: rm.papers.sa24.SensorReading(0.01 * base.twist))
    runs = {
        "SA24, no box": branched,
        "SA24, one box": branched.swap("8", box),
        "SA24, two boxes": branched.swap("8", box).swap("6", box),
        "SA24, a box that carries": branched.swap("7", rm.BlackBox(answer, ("link3_dh",))),
    }
    for count in (3, 24, 100):
        names = [f"m{k}" for k in range(count)]
        docks = [(names[k], names[(k - 1) // 2], f"p{(k - 1) % 2}") for k in range(1, count)]
        runs[f"{count} docked modules"] = rm.ModularRobot(dict.fromkeys(names, one), docks)
    for name, robot in runs.items():
        q, v = robot.neutral(), np.zeros(robot.nv)
        times = []
        for duration in (0.02, 1.0, 3.0):
            start = time.process_time()
            rm.simulate_assembly(robot, q, v, duration, rate=100.0)
            times.append(time.process_time() - start)
        print(f"{name:25s} {(times[2] - times[1]) / 200 * 1e6:7.0f} {times[0]:7.2f}")


if __name__ == "__main__":
    modules_against_the_whole()
    cost_per_module()
    cost_of_a_change()
    cost_of_a_tick()
