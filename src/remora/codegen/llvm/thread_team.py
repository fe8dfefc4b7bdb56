"""A team of threads that shares a batch, in machine code.

    i64  share(ptr team, i64 size, ptr job)
    void worker(ptr self)

The calling thread computes chunks of the batch itself. Helpers that are asleep are woken, and each
thread takes the next chunk until none is left, so that a helper that wakes late computes less and
nobody waits for it. No Python runs in between: helpers never need the global interpreter lock. A
helper sleeps on a lock of CPython (`PyThread_acquire_lock`), as any Python thread does; it does not
spin while there is no work.

The state of a helper:

    idle ─caller─> claimed ─caller─> posted ─helper─> working ─helper─> done ─caller─> idle
                                       │                 └─caller─> waited ─helper─> done
                                       └─caller─> cancelled ─helper─> idle

A caller that runs out of chunks cancels helpers that have not woken yet, and waits for those that
work: it spins for about the time of a chunk, then sleeps. When it returns, no helper refers to its
memory. Several callers share one team; a helper that works for another caller is left out.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.llvm import host
from remora.codegen.llvm.fast_call import address

#: Chunks per thread, so that threads that start late or run slowly compute less.
CHUNKS = 8
#: States in a chunk, at most: threads of a long batch finish at about the same time.
LARGEST_CHUNK = 1024
#: Number of looks at a working helper before the caller sleeps: of the order of 10 µs (estimated).
_LOOKS = 1000
_IDLE, _CLAIMED, _POSTED, _WORKING, _WAITED, _DONE, _CANCELLED = range(7)
#: Size in bytes of a helper's struct and of a job's: whole cache lines of their own.
_HELPER, _JOB = 128, 128

#: The processor's hint that a loop waits for another thread: declaration and call.
_PAUSE = {
    "x86_64": ("void @llvm.x86.sse2.pause()", "void @llvm.x86.sse2.pause()"),
    "aarch64": ("void @llvm.aarch64.hint(i32)", "void @llvm.aarch64.hint(i32 1)"),
}
_PAUSE["arm64"] = _PAUSE["aarch64"]


def ir(triple: str) -> str:
    """Return the IR of `share` and `worker` for a platform."""
    hint = _PAUSE.get(triple.partition("-")[0])
    declared, pause = (f"declare {hint[0]}", f"call {hint[1]}") if hint else ("", "")
    return f"""
%Helper = type {{ i64, ptr, ptr, ptr, i64 }}  ; state, go, finished, job, number of its share
; shares, states, states per share, chunk, function, call, scratch, bytes of scratch per thread,
; helpers; then in a cache line for each share: the first state that nobody has taken
%Job = type {{ i64, i64, i64, i64, ptr, ptr, ptr, i64, ptr }}

declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
{declared}

define internal i1 @change(ptr %self, i64 %old, i64 %new) {{
  %pair = cmpxchg ptr %self, i64 %old, i64 %new acq_rel acquire
  %changed = extractvalue {{ i64, i1 }} %pair, 1
  ret i1 %changed
}}

define internal void @work(ptr %job, i64 %own) {{
entry:
  %shares = load i64, ptr %job
  %p_n = getelementptr %Job, ptr %job, i64 0, i32 1
  %n = load i64, ptr %p_n
  %p_each = getelementptr %Job, ptr %job, i64 0, i32 2
  %each = load i64, ptr %p_each
  %p_chunk = getelementptr %Job, ptr %job, i64 0, i32 3
  %chunk = load i64, ptr %p_chunk
  %p_function = getelementptr %Job, ptr %job, i64 0, i32 4
  %function = load ptr, ptr %p_function
  %p_call = getelementptr %Job, ptr %job, i64 0, i32 5
  %call = load ptr, ptr %p_call
  %p_scratch = getelementptr %Job, ptr %job, i64 0, i32 6
  %scratch = load ptr, ptr %p_scratch
  %p_bytes = getelementptr %Job, ptr %job, i64 0, i32 7
  %bytes = load i64, ptr %p_bytes
  %offset = mul i64 %own, %bytes
  %own_scratch = getelementptr i8, ptr %scratch, i64 %offset
  br label %share
share:
  %k = phi i64 [ 0, %entry ], [ %k1, %exhausted ]
  %beyond = add i64 %own, %k
  %share_k = urem i64 %beyond, %shares
  %line = mul i64 %share_k, 64
  %to_line = add i64 %line, {_JOB}
  %p_next = getelementptr i8, ptr %job, i64 %to_line
  %share_k1 = add i64 %share_k, 1
  %full = mul i64 %share_k1, %each
  %short = icmp slt i64 %n, %full
  %end = select i1 %short, i64 %n, i64 %full
  br label %next
next:
  %start = atomicrmw add ptr %p_next, i64 %chunk monotonic
  %any = icmp slt i64 %start, %end
  br i1 %any, label %compute, label %exhausted
compute:
  %left = sub i64 %end, %start
  %whole = icmp slt i64 %chunk, %left
  %count = select i1 %whole, i64 %chunk, i64 %left
  call void %function(ptr %call, i64 %start, i64 %count, ptr %own_scratch)
  br label %next
exhausted:
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %shares
  br i1 %more, label %share, label %finished
finished:
  ret void
}}

define void @worker(ptr %self) {{
entry:
  %p_go = getelementptr %Helper, ptr %self, i64 0, i32 1
  %go = load ptr, ptr %p_go
  %p_finished = getelementptr %Helper, ptr %self, i64 0, i32 2
  %finished = load ptr, ptr %p_finished
  %p_job = getelementptr %Helper, ptr %self, i64 0, i32 3
  %p_own = getelementptr %Helper, ptr %self, i64 0, i32 4
  br label %sleep
sleep:
  %woken = call i32 @PyThread_acquire_lock(ptr %go, i32 1)
  %posted = call i1 @change(ptr %self, i64 {_POSTED}, i64 {_WORKING})
  br i1 %posted, label %start, label %cancelled
cancelled:
  store atomic i64 {_IDLE}, ptr %self release, align 8
  br label %sleep
start:
  %job = load ptr, ptr %p_job
  %own = load i64, ptr %p_own
  call void @work(ptr %job, i64 %own)
  %old = atomicrmw xchg ptr %self, i64 {_DONE} acq_rel
  %waited = icmp eq i64 %old, {_WAITED}
  br i1 %waited, label %tell, label %sleep
tell:
  call void @PyThread_release_lock(ptr %finished)
  br label %sleep
}}

define internal void @collect(ptr %self) {{
entry:
  %cancelled = call i1 @change(ptr %self, i64 {_POSTED}, i64 {_CANCELLED})
  br i1 %cancelled, label %end, label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i1, %again ]
  %state = load atomic i64, ptr %self acquire, align 8
  %done = icmp eq i64 %state, {_DONE}
  br i1 %done, label %free, label %again
again:
  {pause}
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, {_LOOKS}
  br i1 %more, label %look, label %wait
wait:
  %asked = call i1 @change(ptr %self, i64 {_WORKING}, i64 {_WAITED})
  br i1 %asked, label %sleep, label %free
sleep:
  %p_finished = getelementptr %Helper, ptr %self, i64 0, i32 2
  %finished = load ptr, ptr %p_finished
  %awake = call i32 @PyThread_acquire_lock(ptr %finished, i32 1)
  br label %free
free:
  store atomic i64 {_IDLE}, ptr %self release, align 8
  br label %end
end:
  ret void
}}

define i64 @share(ptr %team, i64 %size, ptr %job) {{
entry:
  %shares = load i64, ptr %job
  %wanted = sub i64 %shares, 1
  %p_helpers = getelementptr %Job, ptr %job, i64 0, i32 8
  %helpers = load ptr, ptr %p_helpers
  br label %seek
seek:
  %k = phi i64 [ 0, %entry ], [ %k1, %skip ], [ %k1, %post ]
  %got = phi i64 [ 0, %entry ], [ %got, %skip ], [ %got1, %post ]
  %inside = icmp slt i64 %k, %size
  %few = icmp slt i64 %got, %wanted
  %go_on = and i1 %inside, %few
  br i1 %go_on, label %ask, label %own
ask:
  %k1 = add i64 %k, 1
  %p_self = getelementptr ptr, ptr %team, i64 %k
  %self = load ptr, ptr %p_self
  %free = call i1 @change(ptr %self, i64 {_IDLE}, i64 {_CLAIMED})
  br i1 %free, label %post, label %skip
skip:
  br label %seek
post:
  %place = getelementptr ptr, ptr %helpers, i64 %got
  store ptr %self, ptr %place
  %got1 = add i64 %got, 1
  %q_job = getelementptr %Helper, ptr %self, i64 0, i32 3
  store ptr %job, ptr %q_job
  %q_own = getelementptr %Helper, ptr %self, i64 0, i32 4
  store i64 %got1, ptr %q_own
  store atomic i64 {_POSTED}, ptr %self release, align 8
  %q_go = getelementptr %Helper, ptr %self, i64 0, i32 1
  %go = load ptr, ptr %q_go
  call void @PyThread_release_lock(ptr %go)
  br label %seek
own:
  call void @work(ptr %job, i64 0)
  br label %ends
ends:
  %j = phi i64 [ 0, %own ], [ %j1, %one ]
  %some = icmp slt i64 %j, %got
  br i1 %some, label %one, label %end
one:
  %p_helper = getelementptr ptr, ptr %helpers, i64 %j
  %helper = load ptr, ptr %p_helper
  call void @collect(ptr %helper)
  %j1 = add i64 %j, 1
  br label %ends
end:
  ret i64 %got
}}
"""


class _Team:
    """The helpers of this process; they live as long as it does.

    Attributes:
        addresses: addresses of the helpers' structs; only ever replaced by a longer array.
    """

    def __init__(self) -> None:
        """Compile `share` and `worker`; no helper yet."""
        target = host.host()
        image = host.to_object(ir(target.triple), target)
        self._code = host.LoadedCode(image, ("share", "worker"))
        pointer = ctypes.c_void_p
        number = ctypes.c_int64
        share = ctypes.CFUNCTYPE(number, pointer, number, pointer)
        self.share = share(self._code.address["share"])
        self._worker = ctypes.CFUNCTYPE(None, pointer)(self._code.address["worker"])
        self._structs: list[Array] = []
        self.forget()

    def forget(self) -> None:
        """Start anew without helpers: a forked process has the team but not its threads."""
        self._growing = threading.Lock()
        self.addresses: Array = np.empty(0, np.int64)

    def grow(self, size: int) -> None:
        """Start threads until there are `size` helpers."""
        with self._growing:
            while len(self.addresses) < size:
                room: Array = np.zeros(_HELPER // 8 + 8, np.int64)
                first = -(-address(room) // 64) * 64
                place = (first - address(room)) // 8
                room[place + 1 : place + 3] = _held_lock(), _held_lock()
                # a daemon: at exit it sleeps on its lock, outside of the interpreter
                name = f"remora-{len(self.addresses) + 1}"
                thread = threading.Thread(
                    target=self._worker, args=(first,), name=name, daemon=True
                )
                thread.start()
                self._structs.append(room)
                self.addresses = np.append(self.addresses, first)


def _held_lock() -> int:
    """Return the address of a new lock of CPython, acquired."""
    api: Any = ctypes.pythonapi
    api.PyThread_allocate_lock.restype = ctypes.c_void_p
    api.PyThread_acquire_lock.argtypes = (ctypes.c_void_p, ctypes.c_int)
    lock = api.PyThread_allocate_lock()
    if not lock:
        raise MemoryError("no memory for a lock")
    api.PyThread_acquire_lock(lock, 0)
    return lock


_made: dict[str, _Team] = {}


def _team() -> _Team:
    """Return the team of this process."""
    return _made.get("team") or _made.setdefault("team", _Team())


def _forget() -> None:
    for team in _made.values():
        team.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run_shared(
    function: int,
    call: Sequence[int],
    states: int,
    threads: int,
    scratch: tuple[int, int] = (0, 0),
    whole: int = 1,
) -> int:
    """Compute all states of a batch on several threads and return the number of helpers woken.

    Args:
        function: address of a function see `row_calls`.
        call: the numbers it reads.
        states: number of states.
        threads: number of threads, the calling one included.
        scratch: address and size in bytes of the scratch memory of the first thread; that of the
            others follows.
        whole: chunks are multiples of this many states.
    """
    team = _team()
    if len(team.addresses) < threads - 1:
        team.grow(threads - 1)
    each = -(-states // (threads * whole)) * whole
    chunk = min(LARGEST_CHUNK, -(-each // CHUNKS))
    chunk = -(-chunk // whole) * whole
    size = (_JOB + 64 * threads) // 8
    job: Array = np.empty(size + len(call) + threads + 8, np.int64)
    here = address(job)
    first = -(-here // 64) * 64
    at_call = first + 8 * size
    at_helpers = at_call + 8 * len(call)
    k = (first - here) // 8
    job[k : k + 9] = (threads, states, each, chunk, function, at_call, *scratch, at_helpers)
    job[k + _JOB // 8 : k + size : 8] = range(0, threads * each, each)
    job[k + size : k + size + len(call)] = call
    helpers = team.addresses
    return team.share(address(helpers), len(helpers), first)
