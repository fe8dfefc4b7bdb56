"""Constants of the step size control of adaptive methods [HNW93, section II.4], and of time."""

from collections.abc import Sequence

import numpy as np

from remora.components.system import ScheduledUpdate
from remora.errors import InvalidValue

#: Limits of the ratio of successive step sizes, and safety factor.
SHRINK, GROW, SAFETY = 0.2, 8.0, 0.9
#: Times closer than this many units in the last place are considered equal.
CLOSE = 8.0


def refuse_unresolved(
    start: float, end: float, durations: Sequence[float], updates: Sequence[ScheduledUpdate]
) -> None:
    """Raise if a phase, or a sample time, is so short that it ends when it begins.

    Args:
        start: of the run, s.
        end: of the run, s.
        durations: of its phases, s; those without a duration are left.
        updates: of its components.
    """
    last = max(abs(start), abs(end))
    times = [(f"the sample time of component {u.names[0]!r}", u.sample_time) for u in updates]
    times += [("the duration of a phase", time) for time in durations if time > 0.0]
    for what, time in times:
        if time <= 2.0 * CLOSE * float(np.spacing(last)):
            raise InvalidValue(
                f"{what}, {time:g} s, is too short: time does not resolve it at t = {last:g} s"
            )
