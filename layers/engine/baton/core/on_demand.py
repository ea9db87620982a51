"""The loader of capabilities: modules that few sagas need, imported with the first use of a name.

A file names such a module twice: for the type checker as an import, and for the process as `OnDemand`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class OnDemand:
    """Module that is not imported yet. After the first use, its names are read without a detour."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        module = import_module(self._module)
        self.__dict__ = module.__dict__  # the same one, so that a name replaced there is replaced here
        return getattr(module, name)
