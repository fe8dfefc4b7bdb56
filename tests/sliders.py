"""A mass on a rail between two stops, and how it moves by SciPy."""

import numpy as np
from scipy.integrate import solve_ivp

import remora as rm


def slider(lower=-np.inf, upper=np.inf, gravity=0.0, mass=1.0, **joint):
    builder = rm.Builder("slider", gravity=(0, 0, gravity))
    builder = builder.body("mass", mass=mass, inertia=(1, 1, 1))
    limits = {"lower": lower, "upper": upper}
    return builder.joint(
        "slide", "prismatic", None, "mass", axis=(0, 0, 1), **limits, **joint
    ).build()


def bounced(q, v, duration, *, lower, upper, gravity, k, d=0.0, mass=1.0):
    """The same by SciPy: each flight and each contact is a smooth problem of its own."""
    t, y = 0.0, np.array([q, v])
    times, states = [], []

    def side(t, y):
        return min(upper - y[0], y[0] - lower)

    while t < duration:
        over = max(y[0] - upper, lower - y[0])
        sign = 1.0 if y[0] > 0.5 * (lower + upper) else -1.0
        contact = over > 1e-12 or (abs(over) <= 1e-12 and sign * y[1] > 0.0)
        bound = upper if sign > 0.0 else lower

        def rate(t, y, contact=contact, sign=sign, bound=bound):
            over = sign * (y[0] - bound)
            push = k * over * max(0.0, 1.0 + d * sign * y[1]) if contact else 0.0
            return [y[1], gravity - sign * push / mass]

        def event(t, y, contact=contact, sign=sign, bound=bound):
            return sign * (y[0] - bound) if contact else side(t, y)

        event.terminal, event.direction = True, -1
        part = solve_ivp(
            rate, (t, duration), y, "DOP853", events=event, rtol=3e-14, atol=1e-14, max_step=0.02
        )
        t, y = part.t[-1], part.y[:, -1].copy()
        if part.status == 1:
            y[0] = upper if y[0] > 0.5 * (lower + upper) else lower
            times.append(t)
            states.append(y.copy())
    return y, times
