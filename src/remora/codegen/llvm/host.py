"""Code generation for the host CPU: LLVM IR to an object, an object to callable functions."""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from remora.codegen import kernel_cache

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

    @property
    def code(self) -> tuple[str, str, str]:
        """What code for it depends on."""
        return self.triple, self.cpu, self.features

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

    @functools.cached_property
    def chunk(self) -> Any:
        """Its function `chunk`, see `row_calls`."""
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        return ctypes.CFUNCTYPE(None, pointer, number, number, pointer)(self.address["chunk"])


class StoredCode:
    """Machine code from the kernel cache.

    What is not there is compiled in a thread of its own, while Python traces what comes next.

    Attributes:
        about: what is stored with the code, JSON values.
    """

    def __init__(self, entry: str, made: Callable[[], tuple[str, Any]]) -> None:
        """Load the code, or begin to compile it.

        Args:
            entry: key of the cache entry.
            made: returns the LLVM IR, and what is to be stored with the code.
        """
        self._entry, self._ir = entry, ""
        self._image: bytes | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._code: LoadedCode | None = None
        self._loading = threading.Lock()
        stored = kernel_cache.load(entry)
        if stored is not None:
            self.about, self._image = kernel_cache.unpacked(stored)
            return
        self._ir, self.about = made()
        self._thread = threading.Thread(target=self._compile, name="remora compilation")
        self._thread.start()

    def _compile(self) -> None:
        try:
            self._image = to_object(self._ir, host())
        except BaseException as error:  # raised by `loaded`
            self._error = error

    def loaded(self, symbols: tuple[str, ...]) -> LoadedCode:
        """Return the code in memory when it is compiled; the symbols are the same in all calls."""
        with self._loading:
            if self._code is None:
                self._code = LoadedCode(self._compiled(), symbols)
                self._image = None
            return self._code

    def _compiled(self) -> bytes:
        """Wait until the code is compiled, and store it."""
        if self._thread is not None:
            self._thread.join()
            if self._error is not None:
                raise self._error
            if self._image is None:  # the process was forked meanwhile: the thread is in the other
                self._image = to_object(self._ir, host())
            kernel_cache.save(self._entry, kernel_cache.packed(self.about, self._image))
            self._thread, self._ir = None, ""
        assert self._image is not None
        return self._image
