"""Changes of documents: JSON Patches by RFC 6902, and the changes of a version that are breaking.

A patch knows nothing of what a document means: the compiler judges what it makes of one. Versions are
compared as `GET /workflows/{name}` shows them, so that the API and the command line find the same.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baton.core.documents.text import MAX_DEPTH, parse_document, write_yaml
from baton.core.expressions import escape
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
    try:
        after = patched(parse_document(text).value, operations)
        if text.lstrip().startswith("{"):
            return json.dumps(after, indent=2, ensure_ascii=False) + "\n"
        return write_yaml(after)
    except RecursionError as error:  # an operation `copy` can double the depth each time
        raise InvalidInput(f"the patched document is nested deeper than {MAX_DEPTH} levels") from error


def _refused(number: int, why: str) -> InvalidInput:
    problem = Problem(f"/patch/{number}", why)
    return InvalidInput(f"operation {number} of the patch: {why}", (problem,))


# ---- compatible and breaking changes


@dataclass(frozen=True, slots=True)
class VersionChange:
    """Change at a place of a document. `is_breaking`: some caller or saga cannot go on with it."""

    path: str
    message: str
    is_breaking: bool


_DOES = ("signal", "tool", "workflow", "graph", "function")
"""Fields of a node that say what it waits for, or runs."""


def version_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], outputs: tuple[Any, Any]
) -> list[VersionChange]:
    """Return the changes from one version to another, the breaking ones first.

    `before` and `after` are views of workflows, `outputs` the templates of their outputs.
    """
    found = [
        VersionChange(path, f"the input: {text}", True)
        for path, text in _narrowed(before["input"], after["input"], "/input")
    ]
    if not found and before["input"] != after["input"]:
        found.append(VersionChange("/input", "the input: it takes all that it took", False))
    found += _of_output(*outputs)
    found += _of_nodes(before["nodes"], after["nodes"], "/nodes")
    graphs = {one["name"]: one for one in after["graphs"]}
    for one in before["graphs"]:
        path = f"/graphs/{escape(one['name'])}"
        if (now := graphs.get(one["name"])) is None:
            found.append(
                VersionChange(path, f"the graph `{one['name']}` is gone: its open sagas stay behind", True)
            )
        else:
            found += _of_nodes(one["nodes"], now["nodes"], f"{path}/nodes")
    return sorted(found, key=lambda change: not change.is_breaking)


def _of_output(before: Any, after: Any) -> Iterator[VersionChange]:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if before != after:
            is_other = isinstance(before, dict) or isinstance(after, dict)
            yield VersionChange("/output", "the output is made of something else", is_other)
        return
    for name in sorted(before.keys() - after.keys()):
        text = f"the output lacks `{name}`, which parents and callers may read"
        yield VersionChange(f"/output/{escape(name)}", text, True)
    for name in sorted(after.keys() - before.keys()):
        yield VersionChange(f"/output/{escape(name)}", f"the output has `{name}`, too", False)


def _of_nodes(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], path: str
) -> Iterator[VersionChange]:
    nodes, known = {one["name"]: one for one in after}, {one["name"] for one in before}
    for old in before:
        name = old["name"]
        place, node = f"{path}/{escape(name)}", nodes.get(name)
        if node is None:
            yield VersionChange(place, f"`{name}` is gone: a saga that has come to it cannot migrate", True)
            continue
        if node["kind"] != old["kind"]:
            text = f"`{name}` was of the kind `{old['kind']}`, and is `{node['kind']}`"
            yield VersionChange(place, f"{text}: a saga that has come to it cannot migrate", True)
            continue
        for field in _DOES:
            if node.get(field) != old.get(field):
                text = f"`{field}` of `{name}` was `{old.get(field)}`, and is `{node.get(field)}`"
                why = (
                    "who sends it does not know"
                    if field == "signal"
                    else "a saga at work there cannot migrate"
                )
                yield VersionChange(f"{place}/{field}", f"{text}: {why}", True)
        if node.get("loops") != old.get("loops"):
            yield VersionChange(place, f"other loops are around `{name}`: a saga in it cannot migrate", True)
    for name in sorted(nodes.keys() - known):
        yield VersionChange(f"{path}/{escape(name)}", f"`{name}` is new", False)


_LOWEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_HIGHEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_SAYS_NOTHING = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$comment", "readOnly"}
)
_OWN_RULE = frozenset(
    {*_LOWEST, *_HIGHEST, "type", "enum", "const", "required", "properties", "items", "$defs"}
)


def _narrowed(before: Any, after: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the places at which a schema refuses what the one before takes. Parts that cannot be compared
    count as narrowed if they have changed.
    """
    old, new = _rules(before), _rules(after)
    if new is None or old == new:
        return
    if old is None or new is False:
        yield path, "it took any value, and is narrower" if old is None else "it takes nothing"
        return
    if old is False:
        return
    if gone := _types(old) - _types(new):
        yield f"{path}/type", f"it does not take {' or '.join(sorted(gone))} any more"
        return
    yield from _narrowed_values(old, new, path)
    yield from _narrowed_parts(old, new, path)
    for name in sorted(new.keys() - _OWN_RULE):
        is_looser = name == "additionalProperties" and new[name] is True
        if new[name] != old.get(name) and not is_looser:
            yield f"{path}/{name}", f"`{name}` has changed"


def _narrowed_values(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    if (allowed := _values(new)) is not None and ((had := _values(old)) is None or had - allowed):
        lost = ", ".join(sorted((had or set()) - allowed)) or "every other value"
        yield f"{path}/enum", f"it does not take {lost} any more"
    for name in (*_LOWEST, *_HIGHEST):
        if name not in new or new[name] == old.get(name):
            continue
        if name not in old or (new[name] > old[name]) == (name in _LOWEST):
            yield f"{path}/{name}", f"`{name}` was {old.get(name, 'not there')}, and is {new[name]}"


def _narrowed_parts(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name in sorted({*new.get("required", ())} - {*old.get("required", ())}):
        yield f"{path}/required", f"it needs `{name}`, which callers need not send until now"
    for group in ("properties", "$defs"):
        had, parts = old.get(group, {}), new.get(group, {})
        for name in sorted(had.keys() & parts.keys()):
            yield from _narrowed(had[name], parts[name], f"{path}/{group}/{escape(name)}")
        if group == "properties" and new.get("additionalProperties") is False:
            for name in sorted(had.keys() - parts.keys()):
                yield f"{path}/properties/{escape(name)}", f"it does not take `{name}` any more"
    yield from _narrowed(old.get("items"), new.get("items"), f"{path}/items")


def _rules(schema: Any) -> Any:
    """Return what a schema says of values; None: nothing, False: there are none."""
    if schema in (None, True):
        return None
    if not isinstance(schema, dict):
        return schema
    return {name: part for name, part in schema.items() if name not in _SAYS_NOTHING} or None


_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def _types(schema: Mapping[str, Any]) -> set[str]:
    said = schema.get("type", _TYPES)
    found = {said} if isinstance(said, str) else set(said)
    return found | {"integer"} if "number" in found else found


def _values(schema: Mapping[str, Any]) -> set[str] | None:
    """Return the values of an enumeration as JSON; None if the schema has none."""
    if "const" in schema:
        return {json.dumps(schema["const"], sort_keys=True)}
    return {json.dumps(one, sort_keys=True) for one in schema["enum"]} if "enum" in schema else None
