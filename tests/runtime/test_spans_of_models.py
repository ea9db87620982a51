"""Spans of a saga: they are of its trace, and sent when an invocation ends."""

from __future__ import annotations

from dataclasses import replace

from baton.adapters.models.profiles import Profiles
from baton.adapters.spans import TracedModels, TracedPerformer, Tracer
from baton.core.tracing import Span
from baton.runtime.engine.parts import Engine
from baton.runtime.worker.worker import SPANS_MS
from tests.kit.process import Process
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, ran


class Kept:
    """Keeps the spans until they are flushed."""

    def __init__(self) -> None:
        self.kept: list[Span] = []
        self.sent: list[Span] = []
        self.within: set[int] = set()

    def note(self, span: Span) -> None:
        self.kept.append(span)

    async def flush(self, within_ms: int) -> None:
        self.sent, self.kept = self.sent + self.kept, []
        self.within.add(within_ms)


class Traced(World):
    """Its workers note spans."""

    spans = Kept()

    def _new_engine(self, process: Process) -> Engine:
        engine = super()._new_engine(process)
        tracer = Tracer(self.spans, engine.clock, engine.entropy)
        if engine.models is None:
            return engine
        profiles = Profiles("own=http://127.0.0.1:1/v1").of
        return replace(
            engine,
            spans=self.spans,
            models=TracedModels(engine.models, profiles, tracer),
            performer=TracedPerformer(engine.performer, tracer),
        )


async def test_requests_and_calls_of_a_saga_are_spans_of_its_trace() -> None:
    world = Traced.start()
    Traced.spans = Kept()
    Desk(world)
    world.models = Scripted(by_turn(asks_for(("sum_add", {"a": 1, "b": 2})), says("3")))
    shown = await ran(world, document(), {"a": 1})
    assert shown["result"] == "3"
    entries = world.entries(shown["id"])
    (trace,) = {entry.traceparent.split("-")[1] for entry in entries}
    invocations = {entry.traceparent.split("-")[2] for entry in entries}
    sent = Traced.spans.sent
    assert [span.name for span in sent] == ["chat m", "execute_tool sum.add", "chat m"]
    assert {span.trace for span in sent} == {trace}
    assert {span.parent for span in sent} <= invocations
    assert len({span.id for span in sent}) == 3
    assert Traced.spans.kept == []
    assert max(Traced.spans.within) <= SPANS_MS
