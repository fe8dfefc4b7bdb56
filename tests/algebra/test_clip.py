"""`clip` on floats, batches and symbols."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from remora.algebra.array_ops import clip
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel

NUMBERS = st.floats(-1e3, 1e3)


@given(x=st.lists(NUMBERS, min_size=1, max_size=5), ends=st.tuples(NUMBERS, NUMBERS))
def test_as_numpy(x, ends):
    low, high = min(ends), max(ends)
    assert np.array_equal(clip(np.array(x), low, high), np.clip(x, low, high))


def test_on_symbols():
    kernel = Kernel(lambda x: clip(x, -1.0, [2.0, 0.5]), [Signature("x", (2,))], "clipped")
    assert np.array_equal(kernel(np.array([[-3.0, 0.2], [5.0, 0.7]])), [[-1.0, 0.2], [2.0, 0.5]])
