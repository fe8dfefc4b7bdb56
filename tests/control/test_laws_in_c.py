"""Every law and reference of the table as C: the bits of the traced functions, tick after tick."""

import pytest

import needs
import remora as rm
from c_structs import built_test, verdict
from laws_on_small_robots import MADE


def test_every_law_of_the_table_is_here():
    packages = ("remora.control.laws", "remora.control.references", "remora.actuators.reaction")
    laws = [name for name, row in rm.COMPONENTS.items() if row.__module__.startswith(packages)]
    assert list(MADE) == laws


@needs.compiler
@pytest.mark.parametrize("name", MADE)
def test_a_law_is_the_same_in_c(name, tmp_path):
    robot, component, needed = MADE[name]
    system = rm.System(robot, [component], {f"{name}.{key}": x for key, x in needed.items()})
    rm.save_component_c(system, name, tmp_path)
    assert verdict(built_test(tmp_path, name, "-O1")) == (0, 0, "good")
