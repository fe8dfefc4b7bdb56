"""`import remora` is quick: public names are imported on first use, and nobody notices."""

import importlib
import pickle
import subprocess
import sys
import types

import pytest

import remora as rm
from remora.lazy_names import homes_of_names, lazy_names, source_of


def printed(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


PAPERS = [rm.papers.dm93, rm.papers.fpg11, rm.papers.sa24, rm.papers.spart17, rm.papers.vt18]
NOUNS = [
    rm.actuators,
    rm.analysis,
    rm.control,
    rm.dynamics,
    rm.estimation,
    rm.layouts,
    rm.loops,
    rm.sensors,
]


@pytest.mark.parametrize(
    "package", [rm, *NOUNS, rm.tasks, rm.world, rm.papers, *PAPERS], ids=lambda m: m.__name__
)
def test_the_list_of_names_is_what_is_imported(package):
    homes = homes_of_names(source_of(package))
    assert sorted(homes) == sorted(package.__all__)
    for name, home in homes.items():
        module = importlib.import_module(home)
        whole = getattr(module, name, None) or importlib.import_module(f"{home}.{name}")
        assert getattr(package, name) is whole, name
    shown = [name for name in dir(package) if not name.startswith("__")]
    assert shown == sorted(package.__all__)


def test_every_name_is_in_one_place():
    places = {}
    for package in (rm, *NOUNS, rm.tasks, rm.world, *PAPERS):
        for name in package.__all__:
            places.setdefault(name, []).append(package.__name__)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    assert len(rm.__all__) <= 137


def test_names_that_users_of_pinocchio_know():
    assert (rm.aba, rm.rnea, rm.crba) == (rm.forward_dynamics, rm.inverse_dynamics, rm.mass_matrix)


def test_import_loads_nothing_but_the_names():
    code = "import remora, sys; print(*sorted(m for m in sys.modules if m.startswith('remora')))"
    assert printed(code) == ["remora", "remora.lazy_names", "remora.sigint_at_import"]
    assert printed("import remora, sys; print('numpy' in sys.modules)") == ["False"]


def test_names_come_in_every_way_of_asking():
    code = "from remora import neutral, topology as t; print(neutral.__name__, t.__name__)"
    assert printed(code) == ["neutral", "remora.model.topology"]
    assert printed("from remora import *; print(load('servicer').nv)") == ["13"]
    assert printed("import remora; print(remora.errors.RemoraError.__name__)") == ["RemoraError"]


def test_dir_lists_the_public_names():
    assert [name for name in dir(rm) if not name.startswith("__")] == sorted(rm.__all__)
    assert {"__all__", "__doc__", "__version__"} <= set(dir(rm))


def test_what_is_pickled_comes_back():
    for name in rm.__all__:
        if not isinstance(value := getattr(rm, name), (types.ModuleType, dict)) and callable(value):
            assert pickle.loads(pickle.dumps(value)) is value


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("JointPD", "has no attribute 'JointPD'; it is remora.control.JointPD$"),
        ("image_rates", "has no attribute 'image_rates'; it is remora.papers.dm93.image_rates$"),
        ("simualte", "module 'remora' has no attribute 'simualte'; did you mean 'simulate'?"),
        ("forwarddynamics", "has no attribute 'forwarddynamics'; did you mean 'forward_dynamics'?"),
        ("xylophone", "module 'remora' has no attribute 'xylophone'$"),
        ("__wrapped__", "module 'remora' has no attribute '__wrapped__'$"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(name, message):
    with pytest.raises(AttributeError, match=message.replace("?", r"\?")):
        getattr(rm, name)
    assert not hasattr(rm, name)
    with pytest.raises(ImportError, match=name):
        exec(f"from remora import {name}")


def test_a_fault_in_a_module_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_lazy").mkdir()
    (tmp_path / "broken_lazy" / "__init__.py").write_text(
        "import sys\nfrom typing import TYPE_CHECKING\nfrom remora.lazy_names import lazy_names\n"
        "if TYPE_CHECKING:\n    from broken_lazy.part import thing\n"
        "__all__ = ['thing']\n__getattr__, __dir__ = lazy_names(sys.modules[__name__])\n"
    )
    (tmp_path / "broken_lazy" / "part.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("broken_lazy")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
            _ = package.thing


def test_a_package_without_source_is_refused():
    module = types.ModuleType("made_in_memory")
    with pytest.raises(ImportError, match="needs its source file"):
        lazy_names(module)[0]("thing")


def test_sigint_is_looked_at_when_remora_is_imported():
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent arranged
import remora
signal.signal(signal.SIGINT, signal.SIG_IGN)
from remora.simulation.engine.interrupts import interruptible
with interruptible():
    print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""
    assert printed(code) == ["True"]
