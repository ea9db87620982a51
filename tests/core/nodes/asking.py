"""Questions of nodes, answers and what came of them, for the tests of the kind `human`. No assertions here."""

from __future__ import annotations

from typing import Any

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.questions import open_questions
from baton.core.log.state import ANSWER
from baton.core.nodes.registry import KINDS
from tests.core.build import TOOLS, Saga

HOUR = 3_600_000
DAY = 24 * HOUR
ON = "\n  then: {tool: t, after: ask}\n  no: {value: '${last_error.message}'}"
APPROVAL = "{title: 'Book ${input.name}?', message: 'For ${input.party}.', details: {n: '${input.party}'}}"
DECISION = "{title: How?, options: [{id: table, label: 'A table for ${input.party}'}, {id: home, destructive: true}]}"
USUAL = "{title: How?, options: [{id: table}, {id: home, default: true}]}"
INPUT = "{title: Seats, schema: {type: object, properties: {n: {type: integer}}, required: [n]}}"
TAKEOVER = "{title: Log in, takeover: {url: '${input.url}', instructions: 'Do it.'}}"
ERROR = "{type: error, title: The printer is empty}"
GIVEN = {"name": "Ubuntu", "party": 4, "url": "https://bank.test/login"}


def compiled(human: str, *, more: str = ON, catch: bool = True) -> Program:
    rules = ", catch: [{code: [rejected, question_expired, question_invalid], then: no}]" if catch else ""
    text = f"name: w\nnodes:\n  ask: {{human: {human}{rules}}}{more}"
    return Program(compile_document(text, TOOLS), KINDS)


def asking(human: str, given: Any = GIVEN, **more: Any) -> Saga:
    saga = Saga(compiled(human, **more), given)
    saga.go()
    return saga


def answer(saga: Saga, action: str, *, key: str = "", by: str = "bob", ref: str = "", **more: Any) -> None:
    ask = next(ask for _, ask in open_questions(saga.state)).id
    said = {"ask": ask, "action": action, **more}
    payload = ev.Value(ref=ref, size=9) if ref else ev.Value(v=said)
    event = ev.SignalReceived(
        name=ANSWER, key=f"{ask}/{key}" if key else ask, payload=payload, by=by, at=saga.now
    )
    saga.put(event, epoch=0, invocation="api")


def asked(saga: Saga) -> ev.Ask:
    (opened,) = [one for entry in saga.entries for one in entry.events if isinstance(one, ev.QuestionOpened)]
    return opened.ask


def output(saga: Saga, slot: str = "ask") -> Any:
    passed = [
        one
        for entry in saga.entries
        for one in entry.events
        if isinstance(one, ev.NodePassed) and one.node == slot
    ]
    return passed[-1].output.v


def said_by_no(saga: Saga) -> str:
    return str(output(saga, "no"))
