"""Whether SIGINT was ignored when Remora was imported: the parent process had arranged that.

A program may itself ignore SIGINT later. Remora therefore looks at `import remora`, not when the
first simulation is imported.
"""

from __future__ import annotations

import signal

#: Python then installs no handler of its own, and SIGINT never raises KeyboardInterrupt.
SIGINT_IGNORED = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
