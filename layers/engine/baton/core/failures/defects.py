"""The closed list of defects: failures that say that code is wrong, and nothing of the business that it was about.

What is done about one is in core/decide/failure_handling.py: its saga is parked until a deploy or a person has mended it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TOOL_DEFECT, INPUT_INVALID = "tool_defect", "input_invalid"

DEFECTS: Mapping[str, str] = {
    INPUT_INVALID: "The arguments of a call do not fit the parameters of its tool.",
    "result_invalid": "What a tool returned does not fit what it promises.",
    "output_invalid": "What a tool returned does not fit the `output_schema` of its node.",
    "tool_missing": "The tool is not in the deployment.",
    TOOL_DEFECT: "The tool raised one of the errors of Python below.",
}
"""By code, what is wrong."""

ERRORS = (
    *("AssertionError", "AttributeError", "ImportError", "IndentationError", "IndexError", "KeyError"),
    *("ModuleNotFoundError", "NameError", "NotImplementedError", "RecursionError", "SyntaxError", "TabError"),
    *("TypeError", "UnboundLocalError", "ZeroDivisionError"),
)
"""Errors of Python itself that say "bug". A class of an application or a library that is derived from one is not on the list: it was
raised on purpose."""


def is_on_purpose(code: str, kind: str) -> bool:
    """Tell whether a tool itself gave the code of a defect: of what the engine finds, no tool has said the class `kind`."""
    return code in DEFECTS and code != TOOL_DEFECT and bool(kind)


def is_bug(exceptions: Sequence[str]) -> bool:
    """Tell whether the first of these names, the error's own, says that the code is wrong."""
    return bool(exceptions) and exceptions[0] in ERRORS
