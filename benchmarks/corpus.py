"""Load all robot files in folders or installed packages and compare with Pinocchio and MuJoCo.

    python benchmarks/corpus.py FOLDER|PACKAGE ... [--json FILE] [--markdown FILE]
        [--limit SECONDS] [--jobs N] [--commands N] [--only TEXT]

URDF, MJCF and SDF files are found by suffix and root element; duplicates count once. Each file is
read in a child process with a time limit. The tables list how many files load, and why the others
are refused. If a peer also reads the file, mass matrix, bias force and accelerations are compared.
With --commands N, `info`, `view`, `compile`, C export and a one-second simulation are run on N of
the loaded files, spread over formats and folders.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from corpus_worker import COMMANDS, file_format, serve

#: Expected relative agreement.
CLOSE = 1e-11
SUFFIXES = (".urdf", ".xml", ".sdf")
#: Larger files are data, not robot descriptions.
LARGEST = 16 << 20


def found(places: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the robot files below each folder or package, with its name."""
    seen: set[bytes] = set()
    files: list[tuple[str, Path]] = []
    for place in places:
        folder = Path(place)
        if not folder.is_dir():
            spec = importlib.util.find_spec(place)
            if spec is None or not spec.submodule_search_locations:
                sys.exit(f"{place!r} is neither a folder nor an installed package")
            folder = Path(next(iter(spec.submodule_search_locations)))
        for path in sorted(folder.rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file() or path.stat().st_size > LARGEST:
                continue
            content = path.read_bytes()
            if path.suffix == ".xml" and not re.search(rb"<mujoco[\s>]", content):
                continue
            key = hashlib.sha256(content).digest()
            if key not in seen:
                seen.add(key)
                files.append((folder.name, path))
    return files


class Worker:
    """A child process that examines files; it is restarted after a crash or a timeout."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._child: Any = None
        self._pipe: Any = None

    def __call__(self, file: Path, commands: bool) -> dict[str, Any]:
        """Return the result for one file, within the time limit."""
        if self._child is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, there = context.Pipe()
            self._child = context.Process(target=serve, args=(there,), daemon=True)
            self._child.start()
            there.close()
        lost = {"file": str(file), "format": file_format(file), "loads": False}
        try:
            self._pipe.send((str(file), commands))
            if self._pipe.poll(self._limit * (10 if commands else 1) + 20.0):
                return self._pipe.recv()
            lost |= {"why": f"more than {self._limit:g} s", "text": ""}
        except (EOFError, OSError):
            lost |= {"why": "the process died", "text": ""}
        self._child.kill()
        self._child.join()
        self._child = None
        return lost


def examined(
    files: Sequence[tuple[str, Path]], limit: float, jobs: int, commands: bool
) -> list[dict[str, Any]]:
    """Return the results for all files, in order."""
    idle = [Worker(limit) for _ in range(jobs)]
    start = time.perf_counter()

    def one(item: tuple[int, tuple[str, Path]]) -> dict[str, Any]:
        number, (place, path) = item
        worker = idle.pop()
        try:
            result = worker(path, commands) | {"place": place}
        finally:
            idle.append(worker)
        if number % 50 == 0 or commands:
            elapsed = f"{time.perf_counter() - start:.0f} s"
            tried = json.dumps(result["commands"]) if "commands" in result else ""
            print(f"{number}/{len(files)} {elapsed} {path} {tried}", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, enumerate(files)))


# Tables --------------------------------------------------------------------------------------


def concerns(r: dict[str, Any]) -> bool:
    """Return whether a file describes a robot that moves and, for URDF, has mass."""
    if r["format"] == "mjcf":
        return bool(r.get("peer") and r.get("peer_nv", 0) > 0 and not r.get("loop"))
    if r["format"] == "urdf":
        return moving_with_mass(Path(r["file"]))
    return r["nv"] > 0 if r["loads"] else r["why"] != "closed loop"


def moving_with_mass(path: Path) -> bool:
    """Return whether a URDF has a movable joint and a nonzero mass."""
    text = re.sub(r"<!--.*?-->", "", path.read_text(errors="replace"), flags=re.DOTALL)
    kinds = (
        r"<joint\b[^>]*type\s*=\s*[\"'](revolute|continuous|prismatic|planar|floating|spherical)"
    )
    masses = re.findall(r"<mass\b[^>]*value\s*=\s*[\"']\s*([0-9.eE+-]+)", text)
    return bool(re.search(kinds, text)) and any(_number(x) > 0.0 for x in masses)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts by format and by reason of refusal."""
    table: dict[str, Any] = {}
    for kind in ("urdf", "mjcf", "sdf"):
        own = [r for r in results if r["format"] == kind]
        if not own:
            continue
        robots = [r for r in own if concerns(r)]
        compared = [r["errors"] for r in own if "errors" in r]
        table[kind] = {
            "files": len(own),
            "robots": len(robots),
            "robots_that_load": sum(r["loads"] for r in robots),
            "read_by_peer": sum(bool(r.get("peer")) for r in own),
            "compared": len(compared),
            "agree": sum(max(e.values()) <= CLOSE for e in compared),
            "largest": {
                key: max((e[key] for e in compared), default=0.0)
                for key in ("mass_matrix", "bias", "acceleration")
            },
            "refused_robots": dict(Counter(r["why"] for r in robots if not r["loads"])),
            "refused_others": dict(
                Counter(r["why"] for r in own if not r["loads"] and r not in robots)
            ),
            "by_place": {
                place: [
                    sum(r["loads"] for r in robots if r["place"] == place),
                    sum(r["place"] == place for r in robots),
                ]
                for place in sorted({r["place"] for r in robots})
            },
        }
    tried = [r["commands"] for r in results if "commands" in r]
    if tried:
        table["commands"] = {
            "files": len(tried),
            **{
                name: dict(Counter(t.get(name, "killed").split(":")[0] for t in tried))
                for name in COMMANDS
            },
        }
    return table


def markdown(table: dict[str, Any]) -> str:
    """Return the tables for the documentation."""
    lines = [
        "| | files | robots that move | load | compared | agree to 1e-11 |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    kinds = [kind for kind in ("urdf", "mjcf", "sdf") if kind in table]
    for kind in kinds:
        t = table[kind]
        share = 100.0 * t["robots_that_load"] / max(1, t["robots"])
        loads = f"{t['robots_that_load']} ({share:.1f} %)"
        cells = (kind.upper(), t["files"], t["robots"], loads, t["compared"], t["agree"])
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "| format | why it does not load | robots | other files |"]
    lines.append("| --- | --- | ---: | ---: |")
    for kind in kinds:
        one, two = table[kind]["refused_robots"], table[kind]["refused_others"]
        for why in sorted(one.keys() | two.keys(), key=lambda w: -one.get(w, 0) - two.get(w, 0)):
            lines.append(f"| {kind.upper()} | {why} | {one.get(why, 0)} | {two.get(why, 0)} |")
    return "\n".join(lines) + "\n"


def spread(results: Iterable[dict[str, Any]], count: int) -> list[tuple[str, Path]]:
    """Return files that load, taken in turn from each format and folder."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for r in results:
        if r["loads"] and r.get("nv", 0) > 0:
            groups.setdefault((r["format"], r["place"]), []).append(r)
    chosen: list[tuple[str, Path]] = []
    waiting = [own[:: max(1, len(own) // count)] for own in groups.values()]
    while waiting and len(chosen) < count:
        for own in waiting:
            chosen.append((own[0]["place"], Path(own.pop(0)["file"])))
        waiting = [own for own in waiting if own]
    return chosen[:count]


def main() -> None:
    """Examine the files, print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", help="folders, or names of installed packages")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--markdown", type=Path, help="a page with <!-- corpus --> ... <!-- end -->"
    )
    parser.add_argument("--details", type=Path, help="JSON with the result of every file")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--commands", type=int, default=0, metavar="N")
    parser.add_argument("--again", type=Path, help="take the results from --details of a run")
    parser.add_argument("--only", default="", help="only files whose path contains this text")
    options = parser.parse_args()
    if options.again is not None:
        results = [r for r in json.loads(options.again.read_text()) if "again" not in r["format"]]
    else:
        files = [item for item in found(options.places) if options.only in str(item[1])]
        results = examined(files, options.limit, options.jobs, commands=False)
    if options.commands:
        chosen = spread(results, options.commands)
        results += [
            r | {"format": f"{r['format']} again"}
            for r in examined(chosen, options.limit, options.jobs, commands=True)
        ]
    table = summary(results)
    print(markdown(table))
    print(json.dumps(table, indent=2))
    for path, value in ((options.json, table), (options.details, results)):
        if path is not None:
            path.write_text(json.dumps(value, indent=2) + "\n")
    if options.markdown is not None:
        text = options.markdown.read_text()
        made = f"<!-- corpus -->\n{markdown(table)}<!-- end -->"
        options.markdown.write_text(
            re.sub(r"<!-- corpus -->.*?<!-- end -->", made, text, flags=re.S)
        )


if __name__ == "__main__":
    main()
