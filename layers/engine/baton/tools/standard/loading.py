"""Loads the tools of an application, and checks what they say of each other and of standard tools.

How a tool is declared is in tools/define.py. What the command line says of a module that does not import is in cli/documents/app.py.
"""

from __future__ import annotations

from baton.core.effects.inverses import problems_of_inverses
from baton.core.failures.alternatives import problems_of
from baton.tools.define import REGISTRY, Registry, ToolError, modules_of
from baton.tools.standard import with_standard


def import_tools(module: str) -> None:
    """Import the app and, if it is a package, every module in it: that declares their tools.

    Modules whose names begin with `_` are left alone. Raises whatever an import raises, and `ToolError`.
    """
    for _ in modules_of(module):
        pass
    specs = REGISTRY.specs()
    if any(problems_of(specs)) or any(problems_of_inverses(specs)):
        with_standard(REGISTRY).check()  # perhaps one of them names a standard tool


def load_app(module: str) -> Registry:
    """The tools of the app. Raises `ToolError` that names the module that is missing."""
    try:
        import_tools(module)
    except ModuleNotFoundError as error:
        raise ToolError(
            f"the app module `{module}` cannot be imported: {error}; set BATON_APP to the package in layers/app"
        ) from error
    return REGISTRY
