"""The words about a text that is no name: the rule, and the nearest valid name.

The rules themselves are patterns in parts/naming.py.
"""

from __future__ import annotations

import re
import unicodedata

from baton.core.documents.parts.naming import NODE_NAME, WORKFLOW_NAME, WORKFLOW_REFERENCE

_LONGEST = 64
_OF_WORKFLOWS = "names of workflows have small letters, digits and `-`, begin with a letter, and have at most 64 characters"
_RULES = {
    NODE_NAME: "names of nodes, signals and schemas have letters, digits and `_`, do not begin with a digit, and have at "
    "most 64 characters",
    WORKFLOW_NAME: _OF_WORKFLOWS,
    WORKFLOW_REFERENCE: f"{_OF_WORKFLOWS}; `@` and the number of a version may follow",
}
_OTHER = "such names are words of small letters, digits and `_` with a `.` between them"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def right_name(text: str, pattern: str) -> str:
    """What would be right in place of a text that does not match the pattern of a name."""
    rule, near = _RULES.get(pattern, _OTHER), _nearest(text, pattern)
    return f"write `{near}`: {rule}" if re.fullmatch(pattern, near) else rule


def _nearest(text: str, pattern: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    if pattern == NODE_NAME:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", plain.strip())
        return f"{'_' * name[:1].isdigit()}{name}"[:_LONGEST]
    name, at, version = plain.partition("@")
    between = "-" if pattern in _RULES else "_"
    name = re.sub(r"[^a-z0-9.]+" if between == "_" else r"[^a-z0-9]+", between, _CAMEL.sub("-", name).lower())
    name = name.strip(between)[:_LONGEST]
    return f"{name}{at}{version}" if pattern == WORKFLOW_REFERENCE and version else name
