"""Puts the deployment's own files into the wheel, where `baton new` finds them.

The list is that of baton.project.deployment. An editable installation takes them from where they are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SharedFiles(BuildHookInterface[Any]):
    """Called by hatchling, the only such class of this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is "standard" for a wheel that is installed, "editable" for one that only points here."""
        if version != "standard":
            return
        sys.path.insert(0, str(Path(self.root, "layers/engine")))
        from baton.project.deployment import SHARED

        here, there = Path(self.root), "baton/project/shared"
        build_data["force_include"].update({str(here / path): f"{there}/{path}" for path in SHARED})
