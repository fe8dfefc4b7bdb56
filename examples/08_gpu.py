"""Base accelerations of a servicer for a million random states, as a CUDA kernel.

The kernel is the library's own forward dynamics with the servicer's parameters compiled in. With a
GPU and CuPy it evaluates a million states; otherwise its PTX is written to a file for use on a
machine with a GPU.
"""

import tempfile
from pathlib import Path

import numpy as np

import remora as rm

STATES = 1_000_000


def on_the_gpu(cupy, kernel, robot):
    """Evaluate random states, timed with CUDA events."""
    q, v = rm.random_state(robot, 0, (10_000,))
    tau = np.random.default_rng(1).normal(size=v.shape)
    tau[:, :6] = 0.0  # the base is not actuated
    repeat = cupy.arange(STATES) % len(q)
    # "in columns": coalesced memory access, neighbouring threads read neighbouring numbers
    q, v, tau = (cupy.asfortranarray(cupy.asarray(a)[repeat]) for a in (q, v, tau))
    kernel(q, v, tau)  # first call: the driver compiles the PTX
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    vdot = kernel(q, v, tau)
    stop.record()
    stop.synchronize()
    seconds = cupy.cuda.get_elapsed_time(start, stop) * 1e-3
    shake = cupy.linalg.norm(vdot[:, 3:6], axis=1)
    print(f"{STATES:,} states in {1e3 * seconds:.2f} ms, {STATES / seconds:.2e} per second")
    print(f"the base accelerates by {float(cupy.median(shake)):.2f} m/s² in the median")
    expected = rm.forward_dynamics(robot, q[7].get(), v[7].get(), tau[7].get())
    agrees = np.allclose(vdot[7].get(), expected, rtol=1e-10)
    print("as the NumPy function says:", agrees)


def main():
    robot = rm.load("servicer")
    kernel = rm.compile(rm.forward_dynamics, robot, target="cuda")
    print(kernel)
    with tempfile.TemporaryDirectory() as folder:
        file = kernel.save_ptx(Path(folder) / "forward_dynamics.ptx", "columns")
        lines = file.read_text().splitlines()
        fused = sum("fma.rn.f64" in line for line in lines)
        print(f"{file.name}: {len(lines)} lines, {fused} of them fused multiply-adds")
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as reason:
        print(f"no GPU to run it on ({type(reason).__name__})")
        return
    on_the_gpu(cupy, kernel, robot)


if __name__ == "__main__":
    main()
