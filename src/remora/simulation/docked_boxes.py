"""Black boxes that are docked to modules: at every tick each reports the wrench on it, held after.

A wrench on a body of a module is a generalized force in the module's own coordinates, JᵀW, whether
or not its base is docked: that of a docked base acts on the body.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array
from remora.dynamics.assembly.connection import Connection
from remora.dynamics.assembly.docking.modular_robot import ModularRobot, taken_port
from remora.dynamics.assembly.robot_module import point_of
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import RemoraError
from remora.simulation.box_exchange import BoxExchange


class DockedBoxes:
    """The black boxes of a modular robot during a run.

    Attributes:
        links: the docks that are closed, by black box.
        exchanges: what each received and returned.
    """

    def __init__(self, robot: ModularRobot, start: float) -> None:
        self._robot = robot
        self.links = {dock.child: dock for dock in robot.box_docks}
        self.exchanges = {
            name: BoxExchange(name, box, robot.gravity) for name, box in robot.boxes.items()
        }
        for name, exchange in self.exchanges.items():
            if name not in self.links:
                exchange.leave(start)
        self._fast: dict[str, CompiledRobot] = {}
        self._wrenches: list[tuple[str, str, Array]] = []

    def dock(self, link: Connection) -> None:
        """Dock a black box."""
        self._robot.check_dock(link)
        if link.child in self.links:
            at = self.links[link.child].parent
            raise RemoraError(f"module {link.child!r} is docked already, to {at!r}")
        self.refuse_taken(link)
        self.links[link.child] = link

    def undock(self, name: str, t: float) -> Connection:
        """Undock a black box; return where it was."""
        self.exchanges[name].leave(t)
        return self.links.pop(name)

    def refuse_taken(self, link: Connection) -> None:
        """Raise if a black box is docked at the port of a dock."""
        for other in self.links.values():
            if (other.parent, other.at) == (link.parent, link.at):
                raise RemoraError(taken_port(link, other.child))

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Ask all docked black boxes; their wrenches are held until the next tick.

        Args:
            t: time, s.
            q: configuration of all modules, `(nq,)`.
            v: velocity, `(nv,)`.
        """
        self._wrenches = []
        for name, link in self.links.items():
            module = self._robot.modules[link.parent]
            own = q[self._robot.q_of(link.parent)], v[self._robot.v_of(link.parent)]
            fast, port = self._compiled(link.parent), point_of(link.parent, module, link.at)
            x, body = dual_quaternion.mul(port.placement, link.placement), port.body
            exchange = self.exchanges[name]
            if body < 0:
                exchange.read(t, np.zeros(6), x)
                continue
            twist = screw.adjoint_inverse(x, fast.twists(*own)[body])
            exchange.read(t, twist, dual_quaternion.mul(fast.poses(own[0])[body], x))
            on_body = -screw.adjoint(x, exchange.wrench)
            self._wrenches.append((link.parent, module.bodies[body].name, on_body))

    def forces(self, q: Array) -> Array:
        """Return the generalized forces of the wrenches on the modules, `(nv,)`."""
        tau: Array = np.zeros(self._robot.nv)
        for module, body, wrench in self._wrenches:
            J = self._compiled(module).jacobian(q[self._robot.q_of(module)], body)
            tau[self._robot.v_of(module)] += J.T @ dual_quaternion.swap(wrench)
        return tau

    def _compiled(self, module: str) -> CompiledRobot:
        if module not in self._fast:
            self._fast[module] = CompiledRobot(self._robot.modules[module])
        return self._fast[module]
