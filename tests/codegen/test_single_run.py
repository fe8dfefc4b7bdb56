"""Programs on fixed arrays, one run per call."""

import numpy as np
import pytest

import remora as rm
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.statements import Block, Cell, Run, Sample


def doubled():
    x = Cell("x", (3,))
    return Program([x], [x], [
        Run(Block(lambda x: 2.0 * x, ["x"], ["x"])), Sample(Block(lambda x: x, ["x"], ["y"])),
    ])  # fmt: skip


def test_each_call_reads_and_writes_the_arrays():
    kernel = ProgramKernel(doubled(), "doubled", lanes=1)
    x, y = np.arange(3.0), np.zeros(3)
    run = kernel.single_run([x], [y])
    run()
    assert y.tolist() == [0.0, 2.0, 4.0]
    x[:] = 5.0
    run()
    assert y.tolist() == [10.0, 10.0, 10.0]


@pytest.mark.parametrize("x", [np.zeros(4), np.zeros(3, np.float32), np.zeros(6)[::2]])
def test_other_arrays_are_refused(x):
    kernel = ProgramKernel(doubled(), "doubled", lanes=1)
    with pytest.raises(rm.RemoraError, match=r"doubled: a contiguous array \(3,\) of float64"):
        kernel.single_run([x], [np.zeros(3)])
