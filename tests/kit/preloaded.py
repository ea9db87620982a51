"""All modules of the engine that a simulation can come to, loaded before it begins.

CPython 3.11 cannot parse source inside of a parse (`SystemError: AST constructor recursion depth mismatch`). A garbage
collection in the middle of one ends coroutines of killed workers, whose last lines must then import nothing.
"""

from __future__ import annotations

import importlib
import pkgutil

import baton.adapters.memory
import baton.core
import baton.runtime

for _room in (baton.core, baton.runtime, baton.adapters.memory):
    for _module in pkgutil.walk_packages(_room.__path__, f"{_room.__name__}."):
        importlib.import_module(_module.name)
