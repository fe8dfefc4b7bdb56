"""Kernels for other processors of the same family: fewer lanes, or no fused multiply-add."""

import platform

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.codegen.ir import philox
from remora.codegen.ir.graph import Signature
from remora.codegen.llvm import host as cpu
from remora.components import noise

ROBOT = rm.load("servicer")
Q, V = rm.random_state(ROBOT, 0, (19,))
TAU = np.random.default_rng(0).normal(size=(19, ROBOT.nv))

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="processors of x86-64")


@pytest.mark.parametrize(
    ("name", "vector_bytes", "fma"), [("haswell", 32, True), ("nehalem", 16, False)]
)
def test_older_processors(monkeypatch, name, vector_bytes, fma):
    """The same bits wherever products are fused; to rounding where they are not."""
    here = cpu.host()
    if fma and not here.fma:
        pytest.skip("this processor cannot run fused products")
    reference = rm.compile(rm.forward_dynamics, ROBOT)(Q, V, TAU)
    other = cpu.Host(here.triple, name, "", vector_bytes, fma)
    monkeypatch.setattr(cpu, "host", lambda: other)
    kernel = rm.compile(rm.forward_dynamics, ROBOT)
    assert f"{name}, {vector_bytes // 8} lanes" in repr(kernel)
    many = kernel(Q, V, TAU)
    if fma == here.fma:
        assert np.array_equal(many, reference)
    assert_close(many, reference)
    for k in range(19):
        assert np.array_equal(kernel(Q[k], V[k], TAU[k]), many[k])


@pytest.mark.parametrize(
    ("name", "vector_bytes", "fma"), [("haswell", 32, True), ("nehalem", 16, False)]
)
def test_noise_has_the_same_bits_on_older_processors(monkeypatch, name, vector_bytes, fma):
    """Also where products are not fused: each is rounded by itself."""
    here = cpu.host()
    if fma and not here.fma:
        pytest.skip("this processor cannot run fused products")
    numbers = philox.normal_numbers(philox.blocks_of_words(1, np.arange(500), 2, 3, 1))[:, 0]
    monkeypatch.setattr(cpu, "host", lambda: cpu.Host(here.triple, name, "", vector_bytes, fma))
    kernel = rm.Kernel(noise.standard_normals, [Signature("numbers", (3,))], "normals")
    assert f"{name}, {vector_bytes // 8} lanes" in repr(kernel)
    assert np.array_equal(kernel(numbers), noise.standard_normals(numbers))
