"""Baton: long AI-agent workflows on short-lived AWS Lambda functions.

What the author of a saga needs; everything else is imported from its own room. Names are loaded when
first used, so that a function that needs no tools does not pay for pydantic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baton.core.version import VERSION

if TYPE_CHECKING:
    from baton.builder import Workflow
    from baton.ports import StepContext as Context
    from baton.ports import StepFailure
    from baton.tools.define import tool

__all__ = ["Context", "StepFailure", "Workflow", "__version__", "tool"]
__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name == "tool":
        from baton.tools.define import tool

        return tool
    if name == "Context":
        from baton.ports import StepContext

        return StepContext
    if name == "StepFailure":
        from baton.ports import StepFailure

        return StepFailure
    if name == "Workflow":
        from baton.builder import Workflow

        return Workflow
    raise AttributeError(name)
