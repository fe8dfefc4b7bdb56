"""Code generation for the host CPU: LLVM IR to an object, an object to callable functions."""

from __future__ import annotations

import functools
import importlib
import itertools
import threading
from dataclasses import dataclass
from typing import Any

llvm: Any = importlib.import_module("llvmlite.binding")

_names = itertools.count()


@dataclass(frozen=True)
class Host:
    """The processor that machine code is generated for.

    Attributes:
        triple: LLVM's name of the platform.
        cpu: LLVM's name of the processor.
        features: processor features in LLVM's notation.
        vector_bytes: width of a vector register in bytes.
        fma: whether it has a fused multiply-add.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    fma: bool

    def lanes(self, dtype: str) -> int:
        """Return the number of SIMD lanes of a vector register."""
        return self.vector_bytes // {"float64": 8, "float32": 4}[dtype]


@functools.cache
def host() -> Host:
    """Return the host processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    known: Any = llvm.get_host_cpu_features()
    has = {name for name, present in known.items() if present}
    vector_bytes = 64 if "avx512f" in has else 32 if "avx2" in has else 16
    fma = "fma" in has or "aarch64" in llvm.get_process_triple()
    return Host(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), known.flatten(), vector_bytes, fma
    )


def to_object(ir: str, target: Host) -> bytes:
    """Compile LLVM IR for the host to a relocatable object.

    Code generation at level 1 takes a tenth less time than at level 2, and its code for graphs,
    programs and loops is as fast, of the same bits.
    """
    module = llvm.parse_assembly(ir)
    module.triple = target.triple
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="default"
    )
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_object(module)


class Compilation:
    """A compilation in a thread of its own: LLVM works while Python traces what comes next."""

    def __init__(self, ir: str, target: Host) -> None:
        """Begin."""
        self._ir, self._target = ir, target
        self._image: bytes | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="remora compilation")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._image = to_object(self._ir, self._target)
        except BaseException as error:  # raised where the code is asked for
            self._error = error

    def image(self) -> bytes:
        """Return the object when it is there."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        if self._image is None:  # the process was forked meanwhile: the thread is in the other one
            self._image = to_object(self._ir, self._target)
        self._ir = ""
        return self._image


@functools.cache
def _jit() -> Any:
    # JITLink places code and constants next to each other; the older linker aborts the process if
    # a crowded address space puts them more than 2 GiB apart
    return llvm.create_lljit_compiler(use_jit_link=True)


class LoadedCode:
    """An object loaded into memory, callable as long as this instance lives."""

    def __init__(self, image: bytes, symbols: tuple[str, ...]) -> None:
        """Link the object and resolve its symbols."""
        host()
        builder = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for symbol in symbols:
            builder = builder.export_symbol(symbol)
        self._tracker: Any = builder.link(_jit(), f"remora{next(_names)}")
        self.address: dict[str, int] = {s: int(self._tracker[s]) for s in symbols}
