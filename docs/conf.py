"""Sphinx settings."""

import re
from importlib.metadata import version as installed_version

project = "Remora"
author = "The Remora authors"
project_copyright = author
version = release = installed_version("remora")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax from its wheel: the pages ask nothing of the network
]
exclude_patterns = ["_build"]
default_role = "code"  # `q` in a docstring is code

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Shown by their names, not as what they stand for.
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"Remora {release}"
html_copy_source = False


def setup(app):
    """Show aliases inside another type, and functions that are defaults, by their names, too."""
    wrapped = re.compile(r"TypeAliasForwardRef\('(\w+)'\)|<function (\w+)>")

    def plain(app, what, name, obj, options, arguments, result):
        return tuple(text and wrapped.sub(r"\1\2", text) for text in (arguments, result))

    app.connect("autodoc-process-signature", plain)
