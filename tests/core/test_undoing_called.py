"""Undoing a step in doubt whose inverse may be called in any case: no person is asked, and no late call comes after it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import CALL, ToolSpec
from baton.core.limits import Limits
from baton.core.log import events as ev
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, program, ready
from tests.core.test_undoing import undoable
from tests.core.undo_asking import asked

LONGEST = Limits().step_timeout_ms
LOST = replace(failed("b", "service_unavailable", "transient"), kept=ev.Value(v={"n": 3}), key="k-b")


def keyed(name: str, *before: str, **more: Any) -> Any:
    node = undoable(
        name,
        *before,
        arguments={"of": "${step.key}", "n": "${step.input.n}"},
        keeps=("n",),
        effect="idempotent",
        **more,
    )
    return replace(node, undo={"t": replace(node.undo["t"], in_doubt=CALL, keyed=True)})


def lost() -> Saga:
    saga = Saga(program(undoable("a"), keyed("b", "a")))
    saga.go(done("a"))
    saga.go(LOST)
    return saga


def test_its_inverse_is_called_with_its_key_once_no_call_can_be_under_way() -> None:
    saga = lost()
    assert (asked(saga), ready(saga.decision)) == ([], [])
    assert saga.decision.due == saga.state.undo.work.steps["b#undo"].not_before  # type: ignore[union-attr]
    saga.go(after_ms=LONGEST + 5)
    (step,) = steps_of(saga.decision)
    assert (step.slot, step.arguments) == ("b#undo", {"of": "k-b", "n": 3})
    saga.go(done("b#undo"))
    saga.go(done("a#undo"))
    end = saga.state.ended
    assert end is not None
    assert end.undone is not None
    assert (end.status, end.undone.done, end.undone.doubts) == ("rolled_back", 2, 0)


def test_an_inverse_that_is_refused_for_good_is_an_incident_and_has_failed() -> None:
    saga = lost()
    saga.go(after_ms=LONGEST + 5)
    saga.go(failed("b#undo", "gone", "permanent"))
    told = [notice for notice in saga.state.outbox.due if notice.incident]
    assert [(notice.code, notice.to) for notice in told] == [("gone", "on_call")]
    saga.go(done("a#undo"))
    saga.note_told()
    saga.go()
    end = saga.state.ended
    assert end is not None
    assert end.undone is not None
    assert (end.status, end.undone.fails, end.undone.doubts) == ("rollback_failed", 1, 0)
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    assert ready(saga.decision) == ["b#undo"]


def test_one_that_was_cut_off_under_a_key_that_is_not_known_is_asked_about() -> None:
    saga = Saga(program(undoable("a"), keyed("b", "a")))
    saga.go(done("a"))
    saga.go(replace(LOST, key=""))
    assert asked(saga) == ["b#undo"]


OBJECT: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def spec(name: str, *takes: str, **more: Any) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": {one: {"type": "string"} for one in takes},
        "required": [*takes],
        "additionalProperties": False,
    }
    return ToolSpec(
        **{
            "name": name,
            "version": "1",
            "effect": "idempotent",
            "parameters": parameters,
            "result": OBJECT,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("hold", "release", "says", "found"),
    [
        ({}, ("step_key",), "", CALL),
        ({}, ("city", "step_key"), "", CALL),
        ({}, ("city",), "", ""),
        ({}, ("id", "step_key"), "", ""),
        ({"effect": "once"}, ("step_key",), "", ""),
        ({"cost": 5}, ("step_key",), "", ""),
        ({"requires_approval": True}, ("step_key",), "", ""),
        ({}, ("step_key",), ", in_doubt: ask", ""),
        ({"in_doubt": "ask"}, ("step_key",), "", ""),
        ({"in_doubt": "ask"}, ("step_key",), ", in_doubt: call", CALL),
        ({"in_doubt": "call", "effect": "once"}, ("city",), "", CALL),
        ({"in_doubt": "call"}, ("city",), ", in_doubt: ask", ""),
        ({"in_doubt": "call"}, ("city",), ", with: {city: '${step.output.id}'}", ""),
        ({"effect": "once"}, ("city",), ", in_doubt: call", CALL),
    ],
)
def test_by_default_it_is_called_where_that_does_no_harm(
    hold: dict[str, Any], release: tuple[str, ...], says: str, found: str
) -> None:
    tools = {
        one.name: one for one in (spec("hold", "city", undo="release", **hold), spec("release", *release))
    }
    text = "name: w\nnodes:\n  a:\n    tool: hold\n    with: {city: x}\n"
    text += f"    compensate: {{timeout: 9s{says}}}\n" if says else ""
    graph = compile_document(text, tools)
    assert graph.nodes[0].undo["hold"].in_doubt == found
