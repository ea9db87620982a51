"""The golden logs of questions that nodes ask."""

from __future__ import annotations

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.questions import Person, awaited_question, claim_question, release, remind_audience
from baton.core.log.state import ANSWER
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga

MINUTE = 60_000
QUESTIONS = """
name: questions
nodes:
  ok: {human: {title: 'Book ${input}?', message: m, details: {n: 1}, to: {group: hosts}}}
  no: {human: {title: t, expires: 1h}, catch: {code: rejected, then: form}}
  form: {human: {title: Seats, schema: {type: object}, to: {user: bob}}}
  how: {human: {title: How, options: [{id: a, label: A}, {id: b, default: true, destructive: true}]}, after: ok}
  hand: {human: {title: h, takeover: {url: 'https://a.test', instructions: i}}, after: form}
"""


def questions() -> Saga:
    """Questions of nodes: approved, rejected, with data, left to its default, and one that is open."""
    saga = Saga(Program(compile_document(QUESTIONS, {}), KINDS), "Ubuntu")
    saga.go()
    saga.tell()
    for ask, said in (
        ("0.ok", {"action": "approve", "comment": "Nice."}),
        ("0.no", {"action": "reject"}),
        ("0.form", {"action": "submit", "data": {"n": 4}}),
    ):
        payload = ev.Value(v={"ask": ask, **said})
        saga.put(ev.SignalReceived(name=ANSWER, key=ask, payload=payload, by="bob", at=saga.now), epoch=0)
        saga.go(after_ms=5)
    saga.now += 86_399_990
    saga.go()
    return saga


ESCALATED = """
name: escalated
nodes:
  ask:
    human:
      title: t
      risk: low
      to: {group: hosts}
      expires: 3h
      escalate: [{after: 10m, remind: true}, {after: 1h, hand_on: {group: leads}}, {after: 2h, decide: approve}]
  late: {human: {title: l, to: {role: answer}, escalate: [{after: 10m, remind: true}, {after: 90m, hand_on: starter}]}}
"""


def escalated() -> Saga:
    """Questions that were claimed, released, told again, handed on and decided by their escalation; one is open."""
    saga = Saga(Program(compile_document(ESCALATED, {}), KINDS), "Ubuntu")
    saga.go()
    saga.tell()
    ana = Person(user="ana", by="ana/phone", groups=("hosts",), roles=("answer",))
    for after_ms, ask, rule in (
        (MINUTE, "0.ask", claim_question),
        (MINUTE, "0.ask", release),
        (5 * MINUTE, "0.ask", claim_question),
        (4 * MINUTE, "", None),
        (9 * MINUTE, "0.late", remind_audience),
        (90 * MINUTE, "", None),
        (MINUTE, "", None),
    ):
        saga.now += after_ms
        if rule is None:
            saga.go()
            continue
        slot, one = awaited_question(saga.state, ask, saga.now)
        saga.put(*rule(saga.state, slot, one, ana, saga.now), epoch=0, invocation="api")
    saga.now += 30 * MINUTE
    saga.go()
    return saga


OF_QUESTIONS = {"questions": questions, "escalated": escalated}
