"""The index of each paper is complete, and its functions and tests exist."""

import ast
import functools
import re
from pathlib import Path

import pytest

import long_tests
import remora as rm
from remora.papers.paper_index import PAPERS, named

TESTS = Path(__file__).resolve().parents[1]
SOURCE = Path(rm.__file__).parent
#: What each paper numbers, by reading it.
UNNUMBERED = ("section ", "appendix ", "footnote ")
NUMBERED = {
    "DM93": [*range(1, 33), *(f"Figure {n}" for n in range(1, 4))],
    "FPG11": [
        *range(1, 45), "A.1", "A.2", "A.3", "B.1", "B.2", *(f"C.{n}" for n in range(1, 8)),
        "Figure 1", "Proposition A.1",
    ],
    "SA24": [
        *range(1, 17), *(f"Algorithm {n}" for n in range(1, 8)), "Proposition 3",
        *(f"Figure {n}" for n in range(1, 10)), *(f"Table {n}" for n in ("I", "II", "III", "IV")),
        "Example 2", "Example 4",
    ],
    "SPART17": [
        *range(1, 52), "Table 1", "Table 2", *(f"Figure {n}" for n in range(1, 8)),
    ],
    "VT18": [
        *range(1, 79), *(f"Table {n}" for n in range(1, 7)), *(f"Figure {n}" for n in range(1, 9)),
        *(f"Lemma {n}" for n in range(1, 4)), "Algorithm 1",
    ],
}  # fmt: skip


@functools.cache
def functions_of(file):
    """Return the test functions of a file by name, with their decorators as text."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: " ".join(map(ast.unparse, node.decorator_list)) for node in nodes}


def refuse_idle(test, config):
    """Raise unless pytest runs a test: if its file is in this session, so is the test.

    Tools that a test needs (`needs.compiler`) may be missing on a machine; nothing else leaves a
    test out. What a session leaves to `make test-all` has been collected, too.
    """
    file, _, function = test.partition("::")
    assert not {"skip", "xfail"} & set(re.findall(r"\w+", functions_of(file)[function])), test
    named = [name for name in config.args if "::" in name and file in name]
    here = {name.partition("[")[0] for name in config.stash[long_tests.COLLECTED]}
    if not named and any(name.startswith(f"tests/{file}::") for name in here):
        assert f"tests/{test}" in here, test


@pytest.mark.parametrize("paper", PAPERS)
def test_no_number_of_a_paper_is_missing(paper):
    numbers = {row.number for row in rm.papers.index(paper)}
    wanted = {str(number) for number in NUMBERED[paper]}
    assert wanted - numbers == set()
    assert {n for n in numbers - wanted if not n.startswith(UNNUMBERED)} == set()


ROWS = list(rm.papers.index())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper} {row.number}")
def test_a_row_is_true(row, request):
    for name in row.functions:
        assert callable(named(name)) or isinstance(named(name), property), name
    for file in row.files:
        assert (SOURCE / file).is_file()
    if row.functions:
        file, _, function = row.test.partition("::")
        assert function in functions_of(file), row.test
        refuse_idle(row.test, request.config)
        page = row.note.partition(",")[0]  # tests of pages run what pages show
        place = TESTS.parent / page if file == "test_docs.py" else TESTS / file
        text = place.read_text(encoding="utf-8")
        leaves = [name.rpartition(".")[2] for name in row.functions]
        assert any(leaf in text for leaf in leaves), f"{file} has none of {leaves}"
    else:
        assert row.note, "a row without a function says why"


def test_a_test_that_does_not_run_is_noticed(request):
    test = next(row.test for row in ROWS if row.test.startswith("dynamics/test_image_space.py"))
    stash = request.config.stash
    collected = stash[long_tests.COLLECTED]
    file = test.partition("::")[0]
    try:
        stash[long_tests.COLLECTED] = {f"tests/{file}::test_of_another_name"}
        with pytest.raises(AssertionError, match=re.escape(test)):
            refuse_idle(test, request.config)
        stash[long_tests.COLLECTED] = {f"tests/{test}[some-3]"}
        refuse_idle(test, request.config)
    finally:
        stash[long_tests.COLLECTED] = collected


def test_rows_are_found_by_number():
    index = rm.papers.index("SPART17")
    assert index[39].rows == index["39"].rows
    (row,) = index[14]
    assert row.functions[0] == "rm.papers.spart17.state"
    assert row.files[0] == "dynamics/spart_calls.py"
    assert str(index["Table 1"]).startswith("SPART17 Table 1: Denavit-Hartenberg")
    assert "note: correction: α turns about i" in str(index["Table 1"])
    assert str(row) in str(rm.papers.index())
    assert len(index) == len(list(index)) > 50
    with pytest.raises(rm.errors.UnknownName, match="no number in the paper named '99'"):
        index["99"]
    with pytest.raises(rm.errors.UnknownName, match="SPART17"):
        rm.papers.index("SPART")
