"""Changes of documents: JSON Patches, by RFC 6902.

Nothing here knows what a document means: the compiler judges what a patch makes of one.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.core.documents.text import parse_document, write_yaml
from baton.core.on_demand import OnDemand
from baton.errors import InvalidInput, Problem

if TYPE_CHECKING:
    import jsonpatch
    import jsonpointer
else:
    jsonpatch = OnDemand("jsonpatch")
    jsonpointer = OnDemand("jsonpointer")

_NO_PLACE = (KeyError, IndexError, TypeError, ValueError)
MOST_BYTES = 1_048_576
"""Most bytes of a patched value as JSON: an operation `copy` can double a value each time."""
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def patched(value: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Return a JSON value after the operations of a JSON Patch. The value itself does not change.

    Raises `InvalidInput` with the first operation that cannot be applied, which is at `/patch/N`.
    """
    after = copy.deepcopy(value)
    for number, one in enumerate(operations):
        try:
            if one.get("op") not in _OPERATIONS:
                raise _refused(number, f"`op` is one of {', '.join(_OPERATIONS)}")
            if not all(isinstance(one.get(name, ""), str) for name in ("path", "from")):
                raise _refused(number, "`path` and `from` are JSON Pointers")
            after = jsonpatch.JsonPatch([dict(one)]).apply(after, in_place=True)
            if one["op"] == "copy" and len(json.dumps(after)) > MOST_BYTES:
                raise _refused(number, f"the patched document has more than {MOST_BYTES:,} bytes")
        except jsonpatch.JsonPatchTestFailed as failed:
            raise _refused(number, f"the document has another value at `{one['path']}`") from failed
        except jsonpatch.InvalidJsonPatch as failed:
            raise _refused(number, str(failed)) from failed
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, *_NO_PLACE) as failed:
            place = " or ".join(f"`{one[name]}`" for name in ("from", "path") if name in one)
            raise _refused(number, f"the document has no place {place}") from failed
    return after


def patched_text(text: str, operations: Sequence[Mapping[str, Any]]) -> str:
    """Return a document's text after a JSON Patch: as JSON if it was JSON, else as YAML without its comments.
    Raises as `patched`.
    """
    after = patched(parse_document(text).value, operations)
    if text.lstrip().startswith("{"):
        return json.dumps(after, indent=2, ensure_ascii=False) + "\n"
    return write_yaml(after)


def _refused(number: int, why: str) -> InvalidInput:
    problem = Problem(f"/patch/{number}", why)
    return InvalidInput(f"operation {number} of the patch: {why}", (problem,))
