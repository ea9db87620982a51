"""A node that asks a model where to go on: the answer that `choose: output.next` needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baton.core.conditions.schemapaths import is_plain
from baton.core.documents.parts.control import BranchModel
from baton.core.documents.parts.fields import shown
from baton.errors import Problem

_NEXT = "output.next"


def choice_of(branch: BranchModel | None) -> dict[str, Any] | None:
    """What the answer has to be where it chooses the next node by `choose: output.next`, and the document has no schema."""
    if branch is None or (branch.choose or "").strip() != _NEXT:
        return None
    ways = {"type": "array", "items": {"enum": list(branch.among)}, "description": "Where to go on."}
    return {
        "type": "object",
        "properties": {
            "next": ways,
            "reasoning": {"type": "string", "description": "Why, in a sentence or two."},
        },
        "required": ["next", "reasoning"],
        "additionalProperties": False,
    }


def unlike_choice(name: str, branch: BranchModel | None, schema: Any) -> Iterator[Problem]:
    """What keeps an `output_schema` of the document's own from naming the nodes that the branch chooses from."""
    if choice_of(branch) is None or branch is None or not is_plain(schema):
        return
    place, among = f"/nodes/{name}/output_schema", list(branch.among)
    listed = f"[{', '.join(among)}]"
    hint = f"write `next: {{type: array, items: {{enum: {listed}}}}}` there, or leave `output_schema` out"
    properties = schema.get("properties")
    if not isinstance(properties, dict) or "next" not in properties:
        if "next" in (schema.get("required") or ()):
            return
        yield Problem(place, "the branch chooses by `output.next`, and this has no `next`", hint)
        return
    found = properties["next"]
    for way in (found, found.get("items")) if isinstance(found, dict) else ():
        if (
            isinstance(way, dict)
            and isinstance(named := way.get("enum"), list)
            and set(among) ^ {*map(str, named)}
        ):
            said = f"the branch chooses among {listed}, and `next` can be {shown(named)}"
            yield Problem(f"{place}/properties/next", said, hint)
