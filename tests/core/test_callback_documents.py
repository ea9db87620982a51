"""How `callback` is written: its two spellings, what is refused of it, and the same by the builder and the schema."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.builder import Workflow
from baton.core.conditions.schema import violations
from baton.core.documents.compile import compile_document
from baton.core.documents.schema import document_schema
from baton.core.documents.text import parse_document
from tests.core.build import problems_of
from tests.core.nodes.handing import HOUR, MINUTE, TOOLS
from tests.kit.sentences import Says


@pytest.mark.parametrize(
    ("callback", "times"),
    [
        ("1h", (HOUR, 0)),
        ("{timeout: 1h}", (HOUR, 0)),
        ("{timeout: 1h, heartbeat: 5m}", (HOUR, 5 * MINUTE)),
        ("{timeout: 1h, heartbeat: 10s}", (HOUR, 10_000)),
        ("3600", (HOUR, 0)),
    ],
)
def test_a_callback_has_a_timeout_and_perhaps_a_heartbeat(callback: str, times: tuple[int, int]) -> None:
    text = f"name: w\nnodes: {{a: {{tool: print, callback: {callback}}}}}"
    found = compile_document(text, TOOLS).nodes[0].callback
    assert found is not None
    assert (found.timeout_ms, found.heartbeat_ms) == times
    assert violations(document_schema(), parse_document(text).value) == ()


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ("tool: print, callback: {}", "/nodes/a/callback/timeout"),
        ("tool: print, callback: {heartbeat: 5m}", "/nodes/a/callback/timeout"),
        ("tool: print, callback: soon", "/nodes/a/callback"),
        ("tool: print, callback: ", "/nodes/a/callback"),
        ("tool: print, callback: {timeout: 5m, heartbeat: 5m}", "/nodes/a/callback"),
        ("tool: print, callback: {timeout: 5m, heartbeat: 9s}", "/nodes/a/callback"),
        ("tool: print, callback: {timeout: 1h, heartbeet: 5m}", "/nodes/a/callback/heartbeet"),
        ("wait: {signal: x}, callback: 1h", "/nodes/a"),
        ("human: {title: x}, callback: 1h", "/nodes/a"),
        ("value: 1, callback: 1h", "/nodes/a"),
        ("tool: mute, callback: 1h", "/nodes/a/callback"),
    ],
)
def test_what_is_wrong_with_a_callback_is_said_with_its_place(node: str, path: str, says: Says) -> None:
    (problem,) = problems_of(f"name: w\nnodes: {{a: {{{node}}}}}", TOOLS)
    assert problem.path == path
    says(problem.message)


def test_the_output_of_work_elsewhere_is_not_what_the_tool_returns() -> None:
    tools = {**TOOLS, "job": replace(TOOLS["print"], name="job", result={"type": "string"})}
    text = "name: w\nnodes: {a: {tool: job%s}}\noutput: '${ctx.a.output.pages}'"
    assert problems_of(text % "", tools) != (), "a string has no field"
    assert problems_of(text % ", callback: 1h", tools) == ()
    declared = ", callback: 1h, output_schema: {type: integer}"
    assert problems_of(text % declared, tools) != ()


def test_the_builder_writes_the_same() -> None:
    def node(**more: Any) -> Any:
        w = Workflow("w")
        w.task("a", "print", **more)
        return w.document()["nodes"]["a"]

    assert node(callback="1h") == {"tool": "print", "callback": {"timeout": "1h"}}
    both = {"timeout": "1h", "heartbeat": "5m"}
    assert node(callback=both, timeout="10s") == {"tool": "print", "callback": both, "timeout": "10s"}
