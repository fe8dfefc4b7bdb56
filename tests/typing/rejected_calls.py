"""Calls that type checkers must reject; `make check` runs pyright over this file.

A line with `pyright: ignore` that is no error is an error itself.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

import numpy as np

import remora as rm


def check() -> None:
    robot = rm.load("servicer")
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    run = rm.simulate(robot, q, v, 1.0, torque={"elbow_pitch": rm.Pulse(0.0, 1.0, 2.0)})
    rm.simulate(robot, "nonsense", v, 1.0)  # pyright: ignore[reportArgumentType]
    rm.simulate(robot, q, "nonsense", 1.0)  # pyright: ignore[reportArgumentType]
    rm.simulate(robot, q, v, 1.0, torque="abc")  # pyright: ignore[reportArgumentType]
    rm.simulate(robot, q, v, "1")  # pyright: ignore[reportArgumentType]
    rm.mass_matrix(q, robot)  # pyright: ignore[reportArgumentType]
    fast = rm.compile(robot)
    fast.forward_dynamics(q, v, v)
    fast.nonsense(q)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    run.joint("elbow_pitch").torque.max()
    run.frame("tool").position.max()
    run.joint("elbow_pitch").position  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] # noqa: B018
    rm.view(run, open=False).run  # noqa: B018
    rm.view(robot, open=False).run  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] # noqa: B018
