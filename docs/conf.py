"""Sphinx settings."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Remora"
author = "The Remora authors"
project_copyright = author
version = release = installed_version("remora")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax from its wheel: no network requests
    "reference_pages",  # docs/reference is made from the docstrings
]
exclude_patterns = ["_build"]
default_role = "code"  # `q` in a docstring is code

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# In the types of properties; other signatures are shortened by reference_pages.
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
napoleon_numpy_docstring = False
# Attributes as one list, whose types are in the signature.
napoleon_use_ivar = True
napoleon_attr_annotations = False

html_theme = "furo"
html_title = f"Remora {release}"
html_copy_source = False
html_search_scorer = str(HERE / "search_scores.js")
