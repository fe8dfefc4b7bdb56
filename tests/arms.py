"""Small robots for tests of control: few joints, so that laws are compiled quickly."""

import numpy as np

import remora as rm


def arm(joints=3, base="free", spread=True):
    """Return a base with an arm of links of 0.5 m and 10 kg about z, y, z, ... [SPART17, Table 2].

    With spread=False all axes are z: a planar arm.
    """
    builder = rm.Builder("arm").body("bus", mass=100.0, inertia=(9.0, 10.0, 9.4))
    builder = builder.joint("base", base, None, "bus")
    parent, offset = "bus", (0.375, 0.0, 0.0)
    for i in range(joints):
        name = f"link_{i}"
        builder = builder.body(name, mass=10.0, com=(0.25, 0, 0), inertia=(0.02, 0.21, 0.21))
        axis = (0, 1, 0) if spread and i % 2 else (0, 0, 1)
        builder = builder.joint(
            f"j{i}", "revolute", parent, name, xyz=offset, axis=axis, lower=-2.0, upper=2.0
        )
        parent, offset = name, (0.5, 0.0, 0.0)
    return builder.frame("tool", parent, xyz=offset).build()


def wheeled(count=4, rotor_inertia=0.0, axes=None):
    """Return a satellite with reaction wheels in a pyramid, or about these axes."""
    builder = rm.Builder("wheeled").body("bus", mass=60.0, inertia=(4.0, 5.0, 6.0))
    builder = builder.joint("base", "free", None, "bus")
    for i in range(count):
        angle = 2 * np.pi * i / count
        axis = np.array([np.cos(angle), np.sin(angle), 0.7] if axes is None else axes[i])
        axis /= np.linalg.norm(axis)
        name = f"wheel_{i}"
        builder = builder.body(name, mass=2.0, inertia=(5e-3, 5e-3, 5e-3))
        builder = builder.joint(f"w{i}", "revolute", "bus", name, axis=tuple(axis),
                                rotor_inertia=rotor_inertia)  # fmt: skip
    return builder.build()
