"""A child that lasts too long and is started anew, and a loop that rests between its rounds."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga, done, tool_spec
from tests.history.lasting import lasting

SLOW = """
name: slow
nodes:
  c: {workflow: other, timeout: 1m, retry: {max_attempts: 2, base: 2s, backoff: fixed}}
  a: {tool: t, after: c}
"""
POLL = """
name: poll
nodes:
  a: {tool: t, poll: {until: output.ready, every: 1m, within: 90s, tries: 9}, catch: b}
  b: {value: "${last_error.answer}"}
"""
TOOLS = {"t": tool_spec("t")}


def overdue() -> Saga:
    saga = Saga(Program(compile_document(SLOW, TOOLS), KINDS))
    saga.go()
    saga.now += 61_000
    saga.go()
    failure = ev.Failure("cancelled", "its time is over")
    saga.put(ev.ChildReported(slot="c", child="s1.0.c", status="cancelled", failure=failure))
    saga.go()
    saga.now += 3_000
    saga.go()
    saga.put(ev.ChildReported(slot="c", child="s1.0.c..2", status="completed", output=ev.Value(v=4)))
    saga.go()
    return saga


def polled() -> Saga:
    saga = Saga(Program(compile_document(POLL, TOOLS), KINDS))
    saga.go()
    for number, pause in enumerate((61_000, 31_000, 0)):
        answer = done(f"a@{number}", {"ready": False, "n": number})
        saga.go(replace(answer, started_at=saga.now, ended_at=saga.now + 5))
        saga.now += pause
        saga.go()
    return saga


OF_AGAIN = {"lasting": lasting, "overdue": overdue, "polled": polled}
