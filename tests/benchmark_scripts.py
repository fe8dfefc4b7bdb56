"""What tests use of `benchmarks/`, whose files are scripts and no package."""

import importlib.util
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def script(name):
    """Return a file of `benchmarks/` as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_peers = script("peer_libraries")
chain, present, print_results = _peers.chain, _peers.present, _peers.print_results
