"""Which source files a key depends on: those that can change what the kernel computes."""

import ast
import functools
import os
import shutil
import subprocess
import sys

import pytest

import remora as rm
from remora.codegen.kernel_cache import entry_key
from remora.dynamics.kernels.cache_keys import kernel_key, value_key
from remora.identity import sources
from remora.identity.digest import code_key
from remora.identity.sources import CODEGEN, EQUATIONS, ROOT, Sources
from remora.planning.task_equations import task_terms
from remora.simulation.batch import batch_phases
from remora.simulation.engine import phase_program

FILES = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*.py"))
#: Packages that no kernel depends on.
NEVER = ("viewer", "cli", "campaigns")


@functools.cache
def imports(name):
    """The files that a file imports, by Python's own parser."""
    tree, found = ast.parse((ROOT / name).read_text()), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            modules = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
        elif isinstance(node, ast.Import):
            modules = [a.name for a in node.names]
        else:
            continue
        found |= {file for m in modules if m.split(".")[0] == "remora" for file in files_of(m)}
    return found - {name}


def files_of(module):
    parts = module.split(".")[1:]
    if not parts:
        return {"__init__.py"}
    places = ["/".join(parts[:k]) for k in range(1, len(parts) + 1)]
    files = {f"{p}.py" for p in places} | {f"{places[-1]}/__init__.py"}
    return files & FILE_SET


FILE_SET = set(FILES)


@functools.cache
def reached(*modules):
    found, ahead = set(), [f for m in modules for f in files_of(m)]
    while ahead:
        name = ahead.pop()
        if name not in found and name != "lazy_names.py":  # holds no equation
            found.add(name)
            ahead += imports(name)
    return found


def within(name, places):
    return name.split("/")[0] in places


@pytest.mark.parametrize("places", [CODEGEN, EQUATIONS], ids=["codegen", "equations"])
def test_the_packages_of_equations_import_no_others(places):
    own = [name for name in FILES if within(name, places)]
    assert len(own) > 50
    beyond = {f for name in own for f in imports(name) if not within(f, places)}
    assert beyond <= {"lazy_names.py"}  # which holds no equation


def test_imports_are_found_in_the_text():
    """Every import statement; and the package as a whole is imported by the command line only."""
    for name in FILES:
        if not within(name, (*EQUATIONS, "cli")):  # those of EQUATIONS are never followed
            found = imports(name)
            assert "__init__.py" not in found, name
            assert found <= sources.SOURCES.imported(name), name


class Own(rm.Component):
    def act(self, at):
        bias = rm.bias_force(at.robot, at.q, at.v) + rm.algebra.vector.cross(at.v[:3], at.v[:3])[0]
        return rm.JointForce("arm", bias[..., -1:])


def keys_of_kernels():
    """Keys of kernels of all kinds, each with the modules of which it is made; None: of a graph."""
    robot = rm.load("vt18_satellite")
    law = rm.control.AttitudePD(robot, (0, 0, 0, 1), 1.0, 1.0, 0.1)
    phase = functools.partial(batch_phases._program, "free")
    return {
        "graph": (lambda: entry_key("graph", b"nodes"), None),
        "function": (lambda: kernel_key(rm.mass_matrix, robot, [], {}), []),
        "task": (lambda: kernel_key(task_terms, robot, [], {}), ["planning.task_equations"]),
        "single run": (
            lambda: value_key(phase_program._program, robot, b"components"),
            ["simulation.engine.phase_program"],
        ),
        "batch": (lambda: value_key(phase, robot), ["simulation.batch.batch_phases"]),
        "component": (lambda: code_key(law), ["control.attitude_pd"]),
        "component of a user": (lambda: code_key(Own()), ["components.component"]),
    }


def copy_package(place):
    """Copy the package to a folder and allow to edit it, even if the checkout is read-only."""
    shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (place, *place.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


def keys_after_edit(name, copy, known, monkeypatch):
    """Return the keys after a file was edited; it has the same length and times."""
    file = copy / name
    text, status = file.read_bytes(), file.stat()
    file.write_bytes(b"#" + text[1:] if text else b"#")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    edited = Sources(copy)
    edited.files.update({n: f for n, f in known.files.items() if n != name})
    try:
        return keys_in(edited, monkeypatch)
    finally:
        file.write_bytes(text)


def keys_in(of, monkeypatch):
    monkeypatch.setattr(sources, "SOURCES", of)
    sources.source_digest.cache_clear()
    sources.digest_of_modules.cache_clear()
    return {name: key() for name, (key, _) in KERNELS.items()}


KERNELS = keys_of_kernels()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    package = tmp_path / "remora"
    copy_package(package)
    monkeypatch.setattr(sources, "_STARTED", 2**63)  # the files of the copy are as good as old
    yield package
    monkeypatch.undo()
    sources.source_digest.cache_clear()
    sources.digest_of_modules.cache_clear()


def expected(name):
    """Which keys depend on a file: by the packages, or by the imports that Python's parser sees."""
    depends = set()
    for kernel, (_, modules) in KERNELS.items():
        if modules is None:
            own = within(name, CODEGEN)
        else:
            own = within(name, EQUATIONS) or name in reached(*(f"remora.{m}" for m in modules))
        depends |= {kernel} if own else set()
    return depends


def changed_keys(name, copy, monkeypatch):
    known = Sources(copy)
    before = keys_in(known, monkeypatch)
    assert None not in before.values()
    after = keys_after_edit(name, copy, known, monkeypatch)
    return {kernel for kernel in before if before[kernel] != after[kernel]}


def test_every_edited_file_changes_exactly_the_keys_of_what_uses_it(copy, monkeypatch):
    known = Sources(copy)
    before = keys_in(known, monkeypatch)
    assert None not in before.values()
    assert keys_in(Sources(copy), monkeypatch) == before == keys_in(Sources(ROOT), monkeypatch)
    for name in FILES:
        after = keys_after_edit(name, copy, known, monkeypatch)
        changed = {kernel for kernel in before if before[kernel] != after[kernel]}
        assert changed == expected(name), name
        assert not changed or not within(name, NEVER), name


SOME = {
    "viewer/view.py": "", "cli/run.py": "", "campaigns/outputs.py": "", "analysis/workspace.py": "",
    "algebra/linear.py": "all", "codegen/llvm/host.py": "all", "errors.py": "all",
    "dynamics/recursive/__init__.py": "all but graph", "model/joints.py": "all but graph",
    "planning/task_equations.py": "task, single run, batch",
    "control/attitude_pd.py": "component", "control/joint_pd.py": "",
    "simulation/program/run_program.py": "single run, batch",
    "simulation/engine/phase_program.py": "single run",
    "components/context.py": "single run, batch, component, component of a user",
}  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_an_edited_file_changes_the_keys_of_what_uses_it(name, copy, monkeypatch):
    wanted = {kernel for kernel in SOME[name].split(", ") if kernel in KERNELS}
    if SOME[name].startswith("all"):
        wanted = set(KERNELS) - ({"graph"} if "but" in SOME[name] else set())
    assert changed_keys(name, copy, monkeypatch) == wanted == expected(name)


def test_a_file_that_is_added_or_renamed_counts(copy, monkeypatch):
    before = keys_in(Sources(copy), monkeypatch)
    (copy / "dynamics" / "new.py").write_text("")
    added = keys_in(Sources(copy), monkeypatch)
    assert {kernel for kernel in before if before[kernel] != added[kernel]} == {*KERNELS} - {
        "graph"
    }
    (copy / "dynamics" / "new.py").rename(copy / "dynamics" / "other.py")
    assert keys_in(Sources(copy), monkeypatch)["function"] not in (
        before["function"],
        added["function"],
    )


def test_text_that_is_newer_than_the_process_is_shared_with_no_other(copy, monkeypatch):
    """The code in memory may be older than the text: its kernels must not be found by the text."""
    before = keys_in(Sources(copy), monkeypatch)
    monkeypatch.setattr(sources, "_STARTED", (copy / "errors.py").stat().st_ctime_ns - 1)
    sources._only_here.cache_clear()
    one = keys_in(Sources(copy), monkeypatch)
    assert one == keys_in(Sources(copy), monkeypatch)
    sources._only_here.cache_clear()  # as in another process
    other = keys_in(Sources(copy), monkeypatch)
    for kernel in KERNELS:
        assert len({before[kernel], one[kernel], other[kernel]}) == 3


# In processes -------------------------------------------------------------------------------------

SCRIPT = """
import numpy as np
import remora as rm
assert PACKAGE in rm.__file__
from remora.codegen.llvm import host
made, compiled = [], host.to_object
host.to_object = lambda *a: made.append(0) or compiled(*a)
b = rm.Builder("slider").body("mass", mass=2.0, inertia=(1, 1, 1))
robot = b.joint("slide", "prismatic", None, "mass", axis=(0, 0, 1)).build()
run = rm.simulate(robot, [0.0], [1.0], 1.0, torque=[1.0], record=rm.Record(progress=False))
rm.simulate_batch(robot, [[0.0]], [[1.0]], 1.0, integrator=rm.Integrator(step=0.1),
                  record=rm.Record(progress=False))
H = rm.compile(rm.mass_matrix, robot)(np.zeros(1))
print(len(made), H[0, 0])
"""


def test_edits_of_the_package_from_process_to_process(tmp_path):
    """A page of the viewer leaves all kernels; an equation is compiled anew."""
    package = tmp_path / "packages" / "remora"
    copy_package(package)
    env = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1",
           "REMORA_CACHE": str(tmp_path / "kernels")}  # fmt: skip

    def run():
        script = SCRIPT.replace("PACKAGE", repr(str(package)))
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        compiled, mass = done.stdout.split()
        return int(compiled), float(mass)

    first, mass = run()
    assert (first > 3, mass) == (True, 2.0)
    for name in ("viewer/view.py", "cli/run.py", "campaigns/study.py", "analysis/workspace.py"):
        (package / name).write_text((package / name).read_text() + "# edited\n")
    assert run() == (0, 2.0)
    equation = package / "dynamics" / "formulations.py"
    text = equation.read_text()
    place = text.index("def mass_matrix(")
    line = text.index("    return ", place)
    equation.write_text(text[:line] + "    return 3.0 * " + text[line + len("    return ") :])
    compiled, mass = run()
    assert compiled > 0
    assert mass == 6.0
