"""Export of a run to files of other programs: one table of quantities, four formats.

Every format holds the same quantities, with the same names and units of their components. CSV and
Parquet have one column per component; NPZ and MAT keep the shape of each quantity.
"""

from __future__ import annotations

import csv
import importlib
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.atomic_files import replacing
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.robot import Robot
from remora.simulation.recording.quantities import (
    OF_CONSTRAINTS,
    QUANTITIES,
    RECORDED,
    SignalColumns,
    described,
)
from remora.simulation.recording.synonyms import SYNONYMS

#: Longest name of a variable in MATLAB.
_MATLAB_NAME = 63


class ExportedQuantity(NamedTuple):
    """A quantity of a run with the names and units of its components.

    Attributes:
        name: `q`, `positions`, or a part of one: `positions.tool`.
        values: `(n, ...)`.
        components: full name and unit of each component, `("q.elbow", "rad")`, in order.
    """

    name: str
    values: Array
    components: tuple[tuple[str, str], ...]

    @property
    def flat(self) -> Array:
        """The values with one column per component, `(n, k)`."""
        return self.values.reshape(len(self.values), len(self.components))

    def texts(self, which: int) -> Array:
        """Return the names (0) or units (1) of the components, in the shape of a sample."""
        texts = np.array([own[which] for own in self.components], dtype=object)
        return texts.reshape(self.values.shape[1:])


def export_table(
    robot: Robot, quantity: Callable[[str], Array], names: Sequence[str], signals: SignalColumns
) -> list[ExportedQuantity]:
    """Return the table that all formats are written from; time comes first.

    Args:
        robot: the robot.
        quantity: (name) -> the values `(n, ...)`.
        names: quantities, signals, or parts of them: `q.elbow`, `positions.tool`.
        signals: signals of components.

    Raises:
        UnknownName: for an unknown name; the message lists the known ones.
    """
    table = [ExportedQuantity("t", quantity("t"), (("t", "s"),))]
    for name in dict.fromkeys(names):
        if name != "t":
            table.append(_quantity(robot, quantity, name, signals))
    return table


def _quantity(
    robot: Robot, quantity: Callable[[str], Array], name: str, signals: SignalColumns
) -> ExportedQuantity:
    known = (*RECORDED, *QUANTITIES, *OF_CONSTRAINTS, *signals)
    if name in known:
        return ExportedQuantity(name, quantity(name), tuple(described(robot, name, signals)))
    owners = [own for own in known if name.startswith((f"{own}.", f"{own}["))]
    if not owners:
        raise UnknownName("quantity of a run", name, known, SYNONYMS)
    whole = _quantity(robot, quantity, max(owners, key=len), signals)
    chosen = [
        k for k, (label, _) in enumerate(whole.components) if f"{label}.".startswith(f"{name}.")
    ]
    if not chosen:
        labels = [label for label, _ in whole.components]
        raise UnknownName(f"component of {whole.name}", name, labels)
    components = tuple(whole.components[k] for k in chosen)
    return ExportedQuantity(name, whole.flat[:, chosen], components)


def pandas() -> Any:
    """Return pandas, or raise an error that names what to install."""
    try:
        return importlib.import_module("pandas")
    except ModuleNotFoundError:
        raise RemoraError("a data frame needs pandas: python3 -m pip install pandas") from None


# Formats ----------------------------------------------------------------------------------------


def _write_csv(file: BinaryIO, table: Sequence[ExportedQuantity], about: Mapping[str, str]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        label if unit == "1" else f"{label} [{unit}]"
        for own in table
        for label, unit in own.components
    )
    columns = [column.tolist() for own in table for column in own.flat.T]
    writer.writerows(zip(*columns, strict=True))  # numbers as the shortest text that reads back
    text.flush()
    text.detach()


def _write_npz(file: BinaryIO, table: Sequence[ExportedQuantity], about: Mapping[str, str]) -> None:
    arrays: dict[str, Array] = {}
    for own in table:
        arrays[own.name] = own.values
        for which, key in enumerate(("names", "units")):
            arrays[f"{own.name}.{key}"] = own.texts(which).astype(str)
    if len(arrays) < 3 * len(table):
        raise InvalidValue("a signal has the name of the names or units of another")
    texts = {key: np.array(text) for key, text in about.items()}
    write_arrays: Any = np.savez_compressed
    write_arrays(file, **arrays, **texts)


def _write_mat(file: BinaryIO, table: Sequence[ExportedQuantity], about: Mapping[str, str]) -> None:
    scipy: Any = importlib.import_module("scipy.io")
    taken = {"names", "units", *about}
    variables = {own.name: _variable(own.name, taken) for own in table}
    arrays: dict[str, Any] = {variables[own.name]: own.values for own in table}
    for which, key in enumerate(("names", "units")):
        # A cell array needs at least one axis: that of a number is 1 x 1.
        arrays[key] = {variables[own.name]: np.atleast_1d(own.texts(which)) for own in table}
    scipy.savemat(
        file, {**arrays, **about}, long_field_names=True, do_compression=True, oned_as="column"
    )


def _variable(name: str, taken: set[str]) -> str:
    """Return a valid and unused name of a MATLAB variable: `gyro.rate` becomes `gyro_rate`."""
    plain = re.sub(r"[^0-9A-Za-z_]", "_", name)
    plain = (plain if plain[0].isalpha() else f"x{plain}")[: _MATLAB_NAME - 4]
    free = (plain, *(f"{plain}_{k}" for k in range(2, 1000)))
    chosen = next(own for own in free if own not in taken)
    taken.add(chosen)
    return chosen


def _write_parquet(
    file: BinaryIO, table: Sequence[ExportedQuantity], about: Mapping[str, str]
) -> None:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise RemoraError("to_parquet needs pyarrow: python3 -m pip install pyarrow") from None
    columns = [
        (label, unit, column)
        for own in table
        for (label, unit), column in zip(own.components, own.flat.T, strict=True)
    ]
    arrays = [arrow.array(np.ascontiguousarray(column)) for _, _, column in columns]
    fields = [
        arrow.field(label, array.type, metadata={"unit": unit})
        for (label, unit, _), array in zip(columns, arrays, strict=True)
    ]
    schema = arrow.schema(fields, metadata=dict(about))
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), file)


#: By suffix: the method of a recording that writes such a file, and how.
FORMATS: dict[str, tuple[str, Callable[..., None]]] = {
    ".csv": ("to_csv", _write_csv),
    ".npz": ("to_npz", _write_npz),
    ".mat": ("to_mat", _write_mat),
    ".parquet": ("to_parquet", _write_parquet),
}


def write(
    path: str | os.PathLike[str],
    suffix: str,
    table: Callable[[], Sequence[ExportedQuantity]],
    about: Mapping[str, str],
) -> Path:
    """Write a table as a file; an existing file is replaced once the new one is complete.

    Args:
        path: the file; its name must end with the suffix.
        suffix: which format, a key of FORMATS.
        table: returns the table.
        about: texts about the run, by name.

    Raises:
        InvalidValue: for another suffix.
        RemoraError: if the file cannot be written.
    """
    file = Path(path)
    if file.suffix.lower() != suffix:
        own = FORMATS.get(file.suffix.lower())
        hint = "" if own is None else f"; {own[0]} writes {file.suffix} files"
        called = FORMATS[suffix][0]
        raise InvalidValue(f"{file}: the name of a file of {called} ends with {suffix}{hint}")
    content = table()
    with replacing(file) as part, open(part, "wb") as opened:
        FORMATS[suffix][1](opened, content, about)
    return file


def refuse_file_name(path: str | os.PathLike[str]) -> None:
    """Raise if a run is to be saved as a folder whose name is that of a file of another format.

    Raises:
        InvalidValue: the message names the method that writes such a file.
    """
    method = FORMATS.get(Path(path).suffix.lower())
    if method is not None:
        raise InvalidValue(
            f"{os.fspath(path)}: a run is saved as a folder, such as "
            f"{Path(path).with_suffix('').name}.zarr; for one {Path(path).suffix} file: "
            f"run.{method[0]}({os.fspath(path)!r})"
        )
