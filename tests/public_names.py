"""The public names of Remora by themselves, whatever module of `rm` they are in."""

from types import ModuleType

import remora as rm


def everywhere(package=rm):
    """Return all public names and what they mean, those of modules below a package, too."""
    found = {}
    for name in package.__all__:
        value = getattr(package, name)
        if not isinstance(value, ModuleType):
            found[name] = value
        elif value is not rm.algebra and hasattr(value, "__all__"):
            found |= everywhere(value)
    return found


def public(name):
    """Return what a public name means."""
    return everywhere()[name]
