"""Settings of Sphinx. `make docs` builds; nothing is fetched from a network."""

import os
import sys
from pathlib import Path

# `docs/build.py` copies the pages elsewhere and builds there; the sources stay where they are.
ROOT = Path(os.environ.get("RECSYS_ROOT", Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(ROOT))

import recsys  # noqa: E402

project = "recsys"
author = "the authors of recsys"
copyright = "the authors of recsys; MIT license"
version = release = recsys.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "sphinx.ext.mathjax",
]
root_doc = "index"
exclude_patterns = ["generate", "build.py", "conf.py"]
default_role = "code"
nitpicky = True
suppress_warnings = ["myst.strikethrough"]

autodoc_typehints = "none"  # the docstrings say them, with shapes
# Methods that scikit-learn adds to every estimator.
METHODS = ("fit", "partial_fit", "predict", "predict_proba", "decision_function", "transform", "score")
REQUESTS = ["get_metadata_routing", *(f"set_{method}_request" for method in METHODS)]
autodoc_default_options = {"exclude-members": ", ".join(REQUESTS)}
toc_object_entries = False  # every name has a heading
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

bibtex_bibfiles = ["bibliography.bib"]
bibtex_default_style = "plain"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"recsys {release}"
html_static_path = ["_static"]
html_css_files = ["recsys.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "show_toc_level": 2,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
    "logo": {"text": f"recsys {release}"},
}
html_sidebars = {"index": [], "changelog": [], "getting-started": []}


def bars_as_they_are(app, what, name, obj, options, lines):
    """Keep the absolute values and sizes of formulas: in reStructuredText |x| is a substitution."""
    example = False
    for k, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = line.split("`")
            parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
            lines[k] = "`".join(parts)


def setup(app):
    """Connect what the docstrings need."""
    app.connect("autodoc-process-docstring", bars_as_they_are, priority=900)
