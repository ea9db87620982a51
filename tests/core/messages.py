"""The golden list of messages: documents, and everything that is told of each, place and words.

`messages.yaml` has the cases: `case` says what is wrong, `document` is the text, `told` is what comes of it. Add a case
with its document and run `.venv/bin/python -m tests.core.messages`: it writes `told` anew for all of them, so that every
changed word shows up in the diff.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from baton.core.documents.compile import children_of, compile_document, no_such_child, notes_of
from baton.core.effects.keys import GRANTED_LIST_KEY, KeyRule
from baton.core.effects.risk import Risk
from baton.core.effects.toolspec import ToolSpec
from baton.errors import InvalidDefinition, MalformedDocument
from tests.core.build import tool_spec
from tests.core.own import KINDS

GOLDEN = Path(__file__).with_suffix(".yaml")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_CARD = {"type": "object", "properties": {"number": _TEXT}, "required": ["number"]}


def _tool(name: str, result: Any = None, needs: tuple[str, ...] = (), **parameters: Any) -> ToolSpec:
    spec = tool_spec(name, result, **parameters)
    spec.parameters["required"] = list(needs)
    return spec


def _once(name: str, **more: Any) -> ToolSpec:
    return ToolSpec(
        name=name,
        version="1",
        effect="once",
        result={},
        parameters={"type": "object", "properties": {"x": {}}},
        **more,
    )


def _undone(name: str, undo: str) -> ToolSpec:
    given = {"type": "object", "properties": {"id": _TEXT}, "required": ["id"]}
    return replace(tool_spec(name, given, party=_NUMBER), undo=undo)


SCORE = {"type": "object", "properties": {"score": _NUMBER, "next": _TEXT}}
TOOLS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        _tool("t", SCORE, x={}, text=_TEXT, maybe={"type": ["string", "null"]}),
        _tool("u.v"),
        _undone("hold", "release"),
        _undone("park", "keep"),
        _undone("gone", "nowhere"),
        _tool("release", {}, ("id",), id=_TEXT, party=_NUMBER),
        _tool(
            "charge", {"type": "object", "properties": {"id": _TEXT}}, ("amount",), amount=_NUMBER, note=_TEXT
        ),
        _tool("search", SCORE, ("city",), city={"type": "string", "minLength": 2}, limit=_NUMBER),
        _tool("pay", {}, ("card",), card=_CARD),
        _tool("keep", {}, ("text", "more"), text={"type": ["string", "null"]}, more={}),
        replace(_tool("seat-guests", guests=_NUMBER), calls=("release",)),
        _once("slow", timeout_ms=3_600_000),
        _once("mute", sees_key=False),
        replace(tool_spec("deaf"), sees_key=False),
        _once("remind", key=KeyRule(strategy="saga")),
        _once("pay.by", instead_of=("charge",)),
        _once("vault.empty", requires_approval=True),
        _once("refund", risk=Risk(action="payment", amount="x", currency_is="USD")),
        tool_spec("std.openapi", api=_TEXT, operation=_TEXT, body={}, operations={GRANTED_LIST_KEY: True}),
    )
}
CHILDREN: Mapping[str, Any] = {
    "delivery": {
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"type": "array"}, "note": _TEXT, "old": {"$ref": "#/definitions/gone"}},
        "additionalProperties": False,
    },
    "anything": None,
    "listed": {"type": "array"},
    "open": {"type": "object"},
}
"""What the children of these documents take."""


def cases() -> list[dict[str, Any]]:
    """The list as it stands."""
    found: list[dict[str, Any]] = yaml.load(GOLDEN.read_text(encoding="utf-8"), _LOADER)
    return found


def told(case: Mapping[str, Any]) -> list[dict[str, str]]:
    """What is told of a document now: its problems, or the notes of one that has none."""
    text = case["document"]
    try:
        graph = compile_document(
            text, TOOLS, json_only=case.get("json", False), children=CHILDREN, kinds=KINDS
        )
    except (InvalidDefinition, MalformedDocument) as error:
        return [
            {
                "at": f"{problem.line}:{problem.column} {problem.path}".strip(),
                "says": problem.message,
                **({"hint": problem.suggestion} if problem.suggestion else {}),
            }
            for problem in error.problems
        ]
    unknown = {child: no_such_child(child, CHILDREN) for child in children_of(graph) if child not in CHILDREN}
    return [{"note": one} for one in notes_of(graph, TOOLS, invocation_ms=60_000, unknown=unknown)]


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are; nothing folded."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def written(found: list[dict[str, Any]]) -> str:
    """The list as its file has it."""
    return "\n".join(
        yaml.dump([case], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
        for case in found
    )


def main() -> None:
    """Write what is told now of each document."""
    GOLDEN.write_text(written([{**case, "told": told(case)} for case in cases()]), encoding="utf-8")


if __name__ == "__main__":
    main()
