"""Memory layout of tree loops: arguments in rows of states, scratch in vectors of lanes.

The code of a step defines *what* is read and written; this class defines *where*. Another machine
(a GPU thread, with one lane and transposed arrays) has another `LaneMemory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remora.codegen.llvm.lowering import (
    SCALARS,
    Writer,
    align,
    everywhere,
    rows_of,
    transposed,
    vector,
)
from remora.codegen.tree_loops.item_classes import LoopPlan


class LaneMemory:
    """Memory of a CPU: arguments in rows of states, scratch in vectors of lanes.

    Arguments are transposed to vectors before the sweeps and results back after them; a single lane
    accesses the rows directly.
    """

    def __init__(self, plan: LoopPlan, dtype: str, lanes: int) -> None:
        """Lay out the arguments of a plan."""
        loops = plan.loops
        self.scalar, self.lanes = SCALARS[dtype], lanes
        self.vector = vector(self.scalar, lanes)
        self.arrays = {f"a{k}": s.size for k, s in enumerate(loops.inputs)}
        self.results = {f"o{k}": s.size for k, s in enumerate(loops.outputs)}
        self.shared = loops.shared
        #: Results that are transposed as a whole; a climb writes its own rows.
        self._whole = {} if loops.rows else self.results
        self._start: dict[str, int] = {}
        self.size = 0
        if lanes > 1:
            for array, size in (self.arrays | self._whole).items():
                self._start[array] = self.size
                self.size += size

    def begin(self, w: Writer) -> None:
        """Emit the setup of one group of states, from row `%b` on."""
        rows_of(w, self.lanes)
        for k in range(self.lanes):
            for array in (*self.arrays, *self.results):
                offset = w.emit(f"mul i64 %row{k}, %s_{array}")
                w.put(f"%{array}.row{k} = getelementptr {self.scalar}, ptr %{array}, i64 {offset}")
        for array, size in self.arrays.items() if self.lanes > 1 else ():
            for start, count in self.blocks(w, f"in_{array}", size):
                rows = [self.row(w, array, k, start) for k in range(self.lanes)]
                if count == self.lanes:
                    loaded = [
                        w.emit(f"load {self.vector}, ptr {r}, align {self._align}") for r in rows
                    ]
                    columns = transposed(w, loaded, self.scalar, self.lanes)
                else:
                    columns = [self.gathered(w, rows)]
                for j, column in enumerate(columns):
                    self._put(w, self._argument(w, array, start, j), column)
        self.clear_shared(w)

    def clear_shared(self, w: Writer) -> None:
        """Emit the initialization to zero of results that items add to."""
        for array, size in self._whole.items() if self.shared else ():
            with w.loop(f"zero_{array}", size) as i:
                self._put(w, self._argument(w, array, i, 0), "zeroinitializer")

    def end(self, w: Writer) -> None:
        """Emit the stores of the results of one group to their rows."""
        for array, size in self._whole.items() if self.lanes > 1 else ():
            for start, count in self.blocks(w, f"out_{array}", size):
                rows = [self.row(w, array, k, start) for k in range(self.lanes)]
                columns = [self._get(w, self._argument(w, array, start, j)) for j in range(count)]
                self.to_rows(w, rows, columns)

    def to_rows(self, w: Writer, rows: Sequence[str], columns: Sequence[str]) -> None:
        """Store one vector, or as many as there are lanes, across the rows of the states."""
        if len(columns) == self.lanes > 1:
            values = transposed(w, list(columns), self.scalar, self.lanes)
            for row, x in zip(rows, values, strict=True):
                w.put(f"store {self.vector} {x}, ptr {row}, align {self._align}")
            return
        for k, row in enumerate(rows):
            x = columns[0]
            if self.lanes > 1:
                x = w.emit(f"extractelement {self.vector} {x}, i32 {k}")
            w.put(f"store {self.scalar} {x}, ptr {row}")

    def read(self, w: Writer, array: str, start: str, k: int) -> str:
        """Return element `start + k` of an argument."""
        return self._get(w, self._argument(w, array, start, k))

    def write(self, w: Writer, array: str, start: str, k: int, value: str) -> None:
        """Store element `start + k` of a result, or add to it if items share elements."""
        place = self._argument(w, array, start, k)
        if self.shared:
            value = w.emit(f"fadd {self.vector} {self._get(w, place)}, {value}")
        self._put(w, place, value)

    def number(self, w: Writer, start: str, k: int) -> str:
        """Return an entry of the items' tables, in every lane."""
        x = self.table(w, "numbers", self.scalar, start, k)
        return everywhere(w, x, self.scalar, self.lanes)

    def load(self, w: Writer, place: str, k: int) -> str:
        """Return the value at `place + k` of the scratch memory."""
        return self._get(w, self._scratch(w, place, self.size + k))

    def store(self, w: Writer, place: str, k: int, value: str) -> None:
        """Store at `place + k` of the scratch memory."""
        self._put(w, self._scratch(w, place, self.size + k), value)

    def store_all(self, w: Writer, place: str, values: Sequence[str]) -> None:
        """Store values in scratch memory, starting at `place`."""
        for k, x in enumerate(values):
            self.store(w, place, k, x)

    def table(self, w: Writer, name: str, kind: str, index: str, k: int) -> str:
        """Return an entry of a constant table."""
        start = w.emit(f"getelementptr {kind}, ptr @{name}, i64 {index}")
        return w.emit(f"load {kind}, ptr {w.emit(f'getelementptr {kind}, ptr {start}, i64 {k}')}")

    @property
    def _align(self) -> int:
        return align(self.scalar)

    def _scratch(self, w: Writer, place: str, k: int) -> str:
        start = w.emit(f"getelementptr {self.vector}, ptr %scratch, i64 {place}")
        return w.emit(f"getelementptr {self.vector}, ptr {start}, i64 {k}")

    def _argument(self, w: Writer, array: str, start: str, k: int) -> str:
        if self.lanes == 1:
            return self.row(w, array, 0, start, k)
        return self._scratch(w, start, self._start[array] + k)

    def row(self, w: Writer, array: str, lane: int, start: str, k: int = 0) -> str:
        """Return the address of element `start + k` of an array, for the state in one lane."""
        place = w.emit(f"getelementptr {self.scalar}, ptr %{array}.row{lane}, i64 {start}")
        return w.emit(f"getelementptr {self.scalar}, ptr {place}, i64 {k}") if k else place

    def _get(self, w: Writer, place: str) -> str:
        return w.emit(f"load {self.vector}, ptr {place}")

    def _put(self, w: Writer, place: str, value: str) -> None:
        w.put(f"store {self.vector} {value}, ptr {place}")

    def gathered(self, w: Writer, rows: Sequence[str]) -> str:
        """Return one element of every row as a vector."""
        if self.lanes == 1:
            return w.emit(f"load {self.scalar}, ptr {rows[0]}")
        value = "poison"
        for k, row in enumerate(rows):
            x = w.emit(f"load {self.scalar}, ptr {row}")
            value = w.emit(f"insertelement {self.vector} {value}, {self.scalar} {x}, i32 {k}")
        return value

    def blocks(
        self, w: Writer, name: str, size: int, upto: str | None = None
    ) -> Iterator[tuple[str, int]]:
        """Yield starts and widths of square blocks, the last shifted to fit; or of columns.

        Args:
            w: destination.
            name: name of the loop.
            size: number of columns.
            upto: number of columns to cover; all by default.
        """
        if 0 < size < self.lanes:
            with w.loop(name, upto or size) as i:
                yield i, 1
        elif size:
            count: int | str = -(-size // self.lanes)
            if upto:
                more = w.emit(f"add i64 {upto}, {self.lanes - 1}")
                count = w.emit(f"udiv i64 {more}, {self.lanes}")
            with w.loop(name, count) as i:
                start = w.emit(f"mul i64 {i}, {self.lanes}")
                inside = w.emit(f"icmp slt i64 {start}, {size - self.lanes}")
                yield (
                    w.emit(f"select i1 {inside}, i64 {start}, i64 {size - self.lanes}"),
                    self.lanes,
                )
