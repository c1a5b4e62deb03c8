"""How Sphinx builds the site; `docs/build.py` calls it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import scipy.stats  # noqa: F401  before torch is mocked, of which SciPy would ask the type

from dissensus import __version__

ROOT = Path(__file__).parents[1]

project = "Dissensus"
author = "the authors of Dissensus"
copyright = "the authors of Dissensus"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
]
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r".*")]  # types of other libraries; links of pages are checked
default_role = "code"
highlight_language = "none"
exclude_patterns = ["README.md"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

templates_path = [str(ROOT / "docs" / "_templates")]
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
_ALIASES = ("Array", "Floats", "Integers", "Codes", "Bools", "Names", "Table")  # of annotations
_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
autodoc_type_aliases = {name: name for name in _ALIASES}
python_maximum_signature_line_length = 88
autodoc_mock_imports = ["torch", "lightning_fabric", "safetensors", "transformers", "PIL"]
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "copyfile_regex": r"",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib",),
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # its page would fetch scripts from outside
    "show_signature": False,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"Dissensus {release}"
html_static_path = [str(ROOT / "docs" / "_static")]
html_favicon = str(ROOT / "docs" / "_static" / "favicon.svg")
html_context = {"default_mode": "auto"}
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "start", "choose", "how_it_works")}
html_theme_options = {
    "logo": {"text": "Dissensus"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "navbar_end": ["version-switcher", "theme-switcher"],
    "switcher": {"json_url": "_static/versions.json", "version_match": release},
    "check_switcher": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}


def plain_aliases(*given: Any) -> tuple[str | None, str | None]:
    """Return a signature in which aliases below other types are plain names, too."""
    signature, returned = given[-2:]
    found = [text and _ALIAS.sub(r"\1", text) for text in (signature, returned)]
    return found[0], found[1]


def setup(app: Any) -> None:
    """Connect it."""
    app.connect("autodoc-process-signature", plain_aliases)
