"""Components of a user's own code in scenario files: only with permission, then as any other."""

import textwrap

import numpy as np
import pytest

import remora as rm
from remora.identity.digest import digest

CODE = """
import remora as rm


class Damper(rm.Component):
    joint: str
    gain: float = 1.0
    limit: float = 0.0

    def act(self, at):
        speed = at.v[..., at.robot.joints[self.joint].v]
        return rm.JointForce(self.joint, -self.gain * speed)


class OfRobot(Damper):
    def __init__(self, robot, gain, name=""):
        super().__init__(robot.joints[-1].name, gain, name=name)


class Broken(rm.Component):
    gain: float

    def __post_init__(self):
        raise RuntimeError("the gain is no good")


def function(): ...
"""
SCENARIO = """
scenario: 1
robot: vt18_satellite
start: {{speeds: {{J2: 10 deg/s}}}}
components:
  - {{type: python, class: "{name}", name: law{more}}}
phases: [{{duration: 0.5}}]
output: {{sample: 0.1}}
integrator: {{name: rk4, step: 0.1}}
"""


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "laws.py").write_text(textwrap.dedent(CODE), encoding="utf-8")

    def written(name="laws.py:Damper", more=", arguments: {joint: J2, gain: 3, limit: 90 deg}"):
        file = tmp_path / "own.yaml"
        file.write_text(SCENARIO.format(name=name, more=more), encoding="utf-8")
        return file

    return written


def test_code_is_never_run_without_permission(scenario, tmp_path):
    mark = tmp_path / "was_run"
    (tmp_path / "laws.py").write_text(
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n" + CODE, encoding="utf-8"
    )
    file = scenario()
    for load in (rm.load_scenario, lambda f: rm.load_scenario(f, allow_code=False)):
        with pytest.raises(rm.errors.ModelError, match=r"line 6.*laws.py:Damper.*--allow-code"):
            load(file)
    assert not mark.exists()
    rm.load_scenario(file, allow_code=True)
    assert mark.exists()


def test_a_component_of_a_file_is_the_one_in_python(scenario):
    loaded = rm.load_scenario(scenario(), allow_code=True)
    (law,) = loaded.system.components.values()
    assert (law.joint, law.gain, law.name) == ("J2", 3.0, "law")
    assert law.limit == np.radians(90.0)
    run = loaded.run(progress=False)
    speeds = run.joint("J2").v
    assert 0.0 < speeds[-1] < speeds[0]
    other = rm.load_scenario(scenario(more=", arguments: {joint: J2, gain: 0}"), allow_code=True)
    free = other.run(progress=False)
    assert free.joint("J2").v[-1] > speeds[-1]


def test_declared_parameters_of_a_users_class_are_settings(scenario, tmp_path):
    """Units, ranges and choices of its fields hold in the file, without a settings class."""
    code = """
class Brake(rm.Component):
    joints: tuple[str, ...] = rm.parameter("that are braked", "joints", default=())
    gain: float = rm.parameter("viscous", unit="N m s/rad", minimum=0.0, default=1.0)
    above: float = rm.parameter("speed from which it acts", unit="rad/s", default=0.0)

    def act(self, at):
        return [rm.JointForce(n, -self.gain * at.joint_velocity(n)) for n in self.joints]
"""
    (tmp_path / "laws.py").write_text(CODE + code, encoding="utf-8")
    more = ", arguments: {{joints: [J2], gain: {}, above: 5 deg/s}}"
    (law,) = rm.load_scenario(
        scenario("laws.py:Brake", more.format(2)), allow_code=True
    ).system.components.values()
    assert (tuple(law.joints), law.gain, law.above) == (("J2",), 2.0, np.radians(5.0))
    for wrong, told in ((more.format(-1), "gain"), (more.format(2).replace("J2", "J9"), "J9")):
        with pytest.raises(rm.errors.ModelError, match=told):
            rm.load_scenario(scenario("laws.py:Brake", wrong), allow_code=True)


def test_changed_code_is_another_component(scenario, tmp_path):
    def law():
        return next(iter(rm.load_scenario(scenario(), allow_code=True).system.components.values()))

    first, same = law(), law()
    assert digest(first) == digest(same)
    text = (tmp_path / "laws.py").read_text(encoding="utf-8")
    (tmp_path / "laws.py").write_text(text.replace("-self.gain * speed", "-2.0 * speed"))
    assert digest(law()) != digest(first)


def test_the_robot_is_given_to_a_class_that_takes_it(scenario):
    file = scenario("laws.py:OfRobot", ", arguments: {gain: 1}")
    (law,) = rm.load_scenario(file, allow_code=True).system.components.values()
    assert law.joint == "J3"


@pytest.mark.parametrize(
    ("name", "more", "reason"),
    [
        ("laws.py:Dampr", "", "did you mean 'Damper'"),
        ("laws.py:function", "", "no component class in laws.py named 'function'"),
        ("other.py:Damper", "", "is not in the scenario's folder"),
        ("../laws.py:Damper", "", "leads out of the scenario's folder"),
        ("laws.py", "", "must be FILE.py:Class or package.module:Class"),
        ("no_such_package.laws:Damper", "", "ModuleNotFoundError"),
        ("laws.py:Damper", "", "joint is missing"),
        (
            "laws.py:Damper",
            ", arguments: {joint: J2, kp: 3}",
            "no argument named 'kp'; known: joint, gain, limit",
        ),
        ("laws.py:Broken", ", arguments: {gain: 3}", "RuntimeError: the gain is no good, line"),
        ("laws.py:Damper", ", gain: 3", "unknown key 'gain'; known: .*class, arguments"),
    ],
)
def test_refusals(scenario, name, more, reason):
    with pytest.raises(rm.errors.ModelError, match=reason):
        rm.load_scenario(scenario(name, more), allow_code=True)


def test_a_file_that_is_no_python_is_refused_with_its_line(scenario, tmp_path):
    (tmp_path / "laws.py").write_text("import remora\nclass Damper(\n", encoding="utf-8")
    with pytest.raises(
        rm.errors.ModelError, match=r"laws.py cannot be loaded: SyntaxError.*line 2"
    ):
        rm.load_scenario(scenario(), allow_code=True)


def test_a_class_of_a_package(scenario):
    file = scenario("remora.world.spring:Spring", ", arguments: {stiffness: 1}")
    with pytest.raises(rm.errors.ModelError, match="missing"):
        rm.load_scenario(file, allow_code=True)


DECLARED = """
import remora as rm


class Stiff(rm.Component):
    '''A spring.'''

    frame: str = rm.parameter("body that is held", "frame")
    stiffness: float = rm.parameter("of the spring", unit="N/m", above=0.0)
    angle: float = rm.parameter("at rest", default=0.0, unit="rad")

    def act(self, at):
        return None
"""


def declared(tmp_path, arguments):
    (tmp_path / "laws.py").write_text(DECLARED, encoding="utf-8")
    file = tmp_path / "own.yaml"
    text = SCENARIO.format(name="laws.py:Stiff", more=f", arguments: {arguments}")
    file.write_text(text, encoding="utf-8")
    return rm.load_scenario(file, allow_code=True)


def test_declared_parameters_of_own_code_are_read_as_those_of_remora(tmp_path):
    body = rm.load("vt18_satellite").bodies[0].name
    system = declared(tmp_path, f"{{frame: {body}, stiffness: 2, angle: 30 deg}}").system
    (law,) = system.components.values()
    assert (law.frame, law.stiffness, law.angle) == (body, 2.0, np.radians(30.0))
    assert "stiffness: of the spring; N/m; greater than 0." in type(law).__doc__


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{frame: nowhere, stiffness: 2}", "no body or frame named 'nowhere'"),
        ("{frame: B, stiffness: -2}", "must be greater than 0, not '-2'"),
        ("{frame: B, stifness: 2}", "did you mean 'stiffness'"),
        ("{stiffness: 2}", "frame is missing"),
        ("{frame: B, stiffness: 2, angle: 3 m}", "degrees such as '30 deg'"),
    ],
)
def test_wrong_arguments_of_own_code_are_named(tmp_path, arguments, told):
    with pytest.raises(rm.errors.ModelError, match="line 6") as error:
        declared(tmp_path, arguments)
    assert any(told in fault.reason for fault in error.value.faults)
