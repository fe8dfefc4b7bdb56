"""Dispersions: the numbers of run i, a function of the study's seed and of i.

Each dispersed number is the inverse distribution function of a uniform number u in (0, 1). With
`random` sampling u follows from seed, run and name alone (counter-based, Philox). In a Latin
hypercube u = (π(i) + w)/n, with π a keyed permutation of the n strata that is evaluated by index
(`permuted`) and w in (0, 1) as for `random`: no design is stored. Sobol sequences also depend on
the number of dispersed numbers; their points are evaluated by index, too (`sobol_points`). Whatever
the size of the study, a block takes memory for its own runs only. Correlated numbers share a
Gaussian copula: z = L Φ⁻¹(u), then u = Φ(z).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.campaigns.indexed_points import ROUNDS, permuted, sobol_points
from remora.campaigns.study_schema import DispersionFile
from remora.components import noise
from remora.errors import RemoraError

#: Tick of the random numbers of dispersions; ticks of components do not reach it.
TICK = 2**48 - 1
#: Largest distance of a truncated range from the mean, in standard deviations.
FARTHEST = 1e100
#: Samplings, with the name of the numbers they give: it changes when the numbers of a seed do.
SAMPLINGS = {
    "random": "random",
    "latin_hypercube": "latin_hypercube, strata by keyed permutations",
    "sobol": "sobol",
}


@dataclass(frozen=True)
class Dispersion:
    """The distribution of one number.

    Attributes:
        name: of the number.
        kind: of the distribution.
        numbers: its parameters by name, in SI units; resolved, none is missing.
        relation: whether it is the `value`, an `offset` of the nominal value, or a `factor`.
        nominal: value in the scenario.
        rows: values of a table, or None.
    """

    name: str
    kind: str
    numbers: Mapping[str, float]
    relation: str
    nominal: float
    rows: Array | None = None

    def values(self, u: Array, runs: Array) -> Array:
        """Return the numbers of runs.

        Args:
            u: uniform numbers in (0, 1), `(n,)`.
            runs: indices of the runs, `(n,)`.
        """
        x = self.rows[runs] if self.rows is not None else INVERSE[self.kind](u, self.numbers)
        if self.relation == "factor":
            return self.nominal * x
        return self.nominal + x if self.relation == "offset" else x


def _normal(u: Array, p: Mapping[str, float]) -> Array:
    return p["mean"] + p["std"] * _scipy_special().ndtri(u)


def _truncated(u: Array, p: Mapping[str, float]) -> Array:
    """Return the numbers from the logarithms of both tails, so that none of them is lost."""
    special = _scipy_special()
    low, high = ((p[k] - p["mean"]) / p["std"] for k in ("low", "high"))
    near, far = np.log1p(-u), np.log(u)  # weights of the lower and of the upper bound
    below = np.logaddexp(special.log_ndtr(low) + near, special.log_ndtr(high) + far)
    above = np.logaddexp(special.log_ndtr(-low) + near, special.log_ndtr(-high) + far)
    lower: Array = special.ndtri_exp(below)
    upper: Array = -special.ndtri_exp(above)
    z = np.where(below < above, lower, upper)
    return np.clip(p["mean"] + p["std"] * z, p["low"], p["high"])


def _uniform(u: Array, p: Mapping[str, float]) -> Array:
    return p["low"] + u * (p["high"] - p["low"])


def _log_normal(u: Array, p: Mapping[str, float]) -> Array:
    return p["median"] * np.exp(p["sigma"] * _scipy_special().ndtri(u))


#: Inverse distribution functions, by name.
INVERSE = {
    "normal": _normal,
    "truncated_normal": _truncated,
    "uniform": _uniform,
    "log_normal": _log_normal,
}


def dispersion(
    name: str, settings: DispersionFile, nominal: float, rows: Array | None = None
) -> Dispersion:
    """Return a dispersion with its defaults filled in, or raise.

    Args:
        name: of the number.
        settings: from the file.
        nominal: value in the scenario.
        rows: column of a table.
    """
    kind = settings.distribution
    given = getattr(settings, kind)
    centre = {"value": nominal, "offset": 0.0, "factor": 1.0}[settings.as_]
    numbers: dict[str, float] = {}
    if kind != "table":
        for key, value in given.model_dump().items():
            numbers[key] = float(centre if value is None else value)
    if kind == "log_normal" and numbers["median"] <= 0.0:
        raise RemoraError(f"the median of a log-normal must be positive, not {centre:g}")
    if kind == "truncated_normal":
        beyond = max(numbers["low"] - numbers["mean"], numbers["mean"] - numbers["high"])
        if beyond > FARTHEST * numbers["std"]:
            raise RemoraError(
                f"its range from {numbers['low']:g} to {numbers['high']:g} is more than "
                f"{FARTHEST:g} standard deviations away from the mean {numbers['mean']:g}"
            )
    return Dispersion(name, kind, numbers, settings.as_, nominal, rows)


def correlation_factor(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> Array:
    """Return the Cholesky factor of a correlation matrix, or raise."""
    R = np.array(matrix, float) if len({len(row) for row in matrix}) == 1 else np.zeros(0)
    n = len(names)
    if R.shape != (n, n):
        raise RemoraError(f"the matrix must be {n} x {n}, as there are {n} names")
    if not np.array_equal(R, R.T) or np.any(np.diag(R) != 1.0):
        raise RemoraError("a correlation matrix is symmetric with ones on its diagonal")
    try:
        return np.linalg.cholesky(R)
    except np.linalg.LinAlgError:
        raise RemoraError("the correlation matrix is not positive definite") from None


@dataclass(frozen=True)
class Dispersions:
    """All dispersed numbers of a study.

    Attributes:
        items: in the order of the study.
        sampling: `random`, `latin_hypercube` or `sobol`.
        seed: of the study.
        runs: number of runs of the study.
        correlated: groups of correlated numbers: their places in `items`, and the Cholesky factor
            of their correlation matrix.
    """

    items: tuple[Dispersion, ...]
    sampling: str
    seed: int
    runs: int
    correlated: tuple[tuple[tuple[int, ...], Array], ...] = ()

    def draw(self, start: int, stop: int) -> dict[str, Array]:
        """Return the numbers of the runs `start` to `stop - 1`, `(n,)` by name."""
        runs = np.arange(start, stop)
        u = self._uniform_numbers(start, stop)
        for places, factor in self.correlated:
            special = _scipy_special()
            group = list(places)
            z = special.ndtri(u[:, group]) @ factor.T
            u = u.copy()
            u[:, group] = np.clip(special.ndtr(z), 2.0**-54, 1.0 - 2.0**-53)
        return {d.name: d.values(u[:, k], runs) for k, d in enumerate(self.items)}

    def _uniform_numbers(self, start: int, stop: int) -> Array:
        """Return uniform numbers in (0, 1), `(n, dispersions)`."""
        count, n = len(self.items), stop - start
        if not count:
            return np.zeros((n, 0))
        if self.sampling == "random":
            runs = np.arange(start, stop)
            return np.stack([_uniform_of(self.seed, runs, d.name) for d in self.items], axis=-1)
        if self.sampling == "latin_hypercube":
            runs = np.arange(start, stop)
            columns = [_stratified(self.seed, runs, d.name, self.runs) for d in self.items]
            return np.clip(np.stack(columns, axis=-1), 2.0**-54, 1.0 - 2.0**-53)
        u = sobol_points(start, stop, count, self.seed)
        return np.clip(u, 2.0**-54, 1.0 - 2.0**-53)


def _uniform_of(seed: int, runs: Array, name: str) -> Array:
    """Return (2 m + 1)/2⁵³ in (0, 1) from 52 random bits m of each run, `(n,)`."""
    words = noise.words(seed, runs, noise.stream_number(f"dispersion {name}"), TICK, 2)
    high, low = (words[:, k].astype(np.uint64) for k in range(2))
    bits = (high << np.uint64(20)) | (low >> np.uint64(12))
    return (2.0 * bits.astype(float) + 1.0) * 2.0**-53


def _stratified(seed: int, runs: Array, name: str, count: int) -> Array:
    """Return uniform numbers of which one lies in each of `count` equal intervals, `(n,)`."""
    strata = permuted(runs, count, _keys(seed, name)).astype(float)
    return (strata + _uniform_of(seed, runs, name)) / count


@functools.lru_cache(maxsize=256)
def _keys(seed: int, name: str) -> Array:
    """Return the keys of the permutation of a number's strata, `(ROUNDS,)` uint64."""
    stream = noise.stream_number(f"strata {name}")
    words = noise.words(seed, 0, stream, TICK, 2 * ROUNDS).astype(np.uint64)
    return (words[0::2] << np.uint64(32)) | words[1::2]


def _scipy_special() -> Any:
    return importlib.import_module("scipy.special")
