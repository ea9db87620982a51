"""The course of the demo against a made-up system: when it kills, whom it cancels, when it stops."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from baton.client.api import Api
from baton.client.connection import Connection
from baton.client.transport import Reader
from baton.demo.evidence import Books
from baton.demo.report import Progress, summary
from baton.demo.scenario import (
    FALLING,
    GUEST,
    KILLS,
    LARGE,
    WORDS,
    DemoPlan,
    Scenario,
    evening,
    service_faults,
)
from baton.local.processes import ProcessInfo
from tests.cli.conftest import FakeApi
from tests.kit.sentences import Says

TICK_S = 0.002


def busy(pid: int, ago_ms: int, request_id: str) -> ProcessInfo:
    return ProcessInfo(pid, True, request_id, round(time.time() * 1000) - ago_ms, False)


def effect(kind: str) -> dict[str, Any]:
    return {"kind": kind, "identity": {"reference": "s0"}, "at_ms": 7}


class Workers:
    def __init__(self, *processes: ProcessInfo) -> None:
        self._processes = list(processes)
        self.killed: list[int] = []

    def processes(self, function: str) -> Sequence[ProcessInfo]:
        assert function == "WorkerFunction"
        return self._processes

    def kill(self, pid: int) -> None:
        self.killed.append(pid)
        self._processes = [process for process in self._processes if process.pid != pid]


class Screen:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def update(self, sagas: Mapping[str, Mapping[str, Any]]) -> None:
        assert sagas


def saga(number: int, status: str, steps: int, invocations: int = 1) -> tuple[int, dict[str, Any]]:
    return 200, {"id": f"s{number}", "status": status, "steps": steps, "invocations": invocations}


def prepared(api: FakeApi, *answers: list[tuple[int, dict[str, Any]]]) -> None:
    """One list of answers of `GET /sagas/sN` for each saga. The agent's, `planned`, is done when it is first looked at."""
    started = [f"s{n}" for n in range(len(answers))]
    api.on("POST /sagas", *((201, {"id": saga, "status": "pending"}) for saga in started))
    api.on("POST /intentions", (201, {"id": "planned", "status": "pending"}))
    api.on(
        "GET /sagas/planned", (200, {"id": "planned", "status": "completed", "steps": 9, "invocations": 1})
    )
    api.on("GET /sagas/planned/events", (200, {"entries": [], "next": None}))
    for n, states in enumerate(answers):
        api.on(f"GET /sagas/s{n}", *states)
        api.on(f"POST /sagas/s{n}/cancel", (202, {"id": f"s{n}", "status": "running", "version": 9}))
        entries = [{"epoch": 1, "invocation": "the-request.abc", "events": []}]
        api.on(f"GET /sagas/s{n}/events", (200, {"entries": entries, "next": None}))
    api.on("GET /books/unanswered", (200, {"effects": []}))
    api.on("GET /questions", (200, {"questions": [], "next": None}))
    for place in service_faults():
        api.on(f"PUT /faults/{place}", (200, {}))


async def holder(saga: str) -> str:
    return "its-request.abc" if saga == "planned" else "the-request.abc"


def play(api: FakeApi, plan: DemoPlan, workers: Workers) -> tuple[Scenario, Screen]:
    screen = Screen()

    async def run() -> Scenario:
        async with Api(Connection(api.url, "t")) as client, Reader() as reader:
            async with Api(Connection(api.url, "of-another")) as other:
                books = Books(reader, [api.url])
                scenario = Scenario(plan, client, other, workers, holder, books, screen, steps=14)
                await scenario.run()
            return scenario

    return asyncio.run(run()), screen


def test_the_evening_that_falls_through_is_not_cancelled_and_is_the_one_whose_snack_is_sold_out(
    api: FakeApi,
) -> None:
    done = [saga(0, "completed", 14)], [saga(1, "completed", 14)]
    prepared(api, *done, [saga(2, "running", 9), saga(2, "rolled_back", 11)])
    scenario, _ = play(api, DemoPlan(sagas=3, tick_s=TICK_S), Workers())
    assert scenario.course.falling in {"s0", "s1", "s2"}
    assert scenario.course.falling != scenario.course.cancelled
    (sold_out,) = service_faults()[f"{evening(FALLING)['city'].lower()}/dumplings"]
    assert sold_out["at"] == "2026-12-01T22:30:00+00:00", "at the bar, three hours later"
    assert [n for n in range(200) if evening(n) == evening(FALLING)] == [FALLING]


def test_it_starts_every_saga_cancels_one_under_way_and_ends_with_the_last(api: FakeApi) -> None:
    """Of five only the last is needed for nothing else: two are to have their workers killed, one falls through, one asks."""
    # Which id the last one gets depends on whose start comes first; and two look at it.
    prepared(api, *([saga(n, "running", 5)] * 6 + [saga(n, "completed", 14)] for n in range(5)))
    scenario, screen = play(api, DemoPlan(sagas=5, tick_s=TICK_S), Workers())
    # They are started concurrently, so whose answer comes first is not said.
    assert sorted(scenario.course.sagas) == ["planned", "s0", "s1", "s2", "s3", "s4"]
    given = [asked.json["input"] for asked in api.of("POST", "/sagas")]
    (words,) = [asked.json for asked in api.of("POST", "/intentions")]
    assert (scenario.course.planning, words) == ("planned", {"words": WORDS, "input": GUEST})
    assert sorted(given, key=str) == sorted(map(evening, range(5)), key=str)
    assert len(api.of("POST", f"/sagas/{scenario.course.cancelled}/cancel")) == 1
    assert scenario.course.cancelled in screen.said[-1]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first saga is the one that asks."""
    monkeypatch.setattr("baton.demo.scenario.LARGE", 0)


QUESTION = {"saga": "s0", "id": "0.hold.f1", "title": "Hold it?", "message": "high risk"}
ASKED: tuple[int, Any] = (200, {"questions": [QUESTION], "next": None})
NOT_YET: tuple[int, Any] = (200, {"questions": [], "next": None})


@pytest.mark.usefixtures("large")
def test_a_question_is_seen_left_alone_and_approved_once_by_another_person(api: FakeApi, says: Says) -> None:
    prepared(api, [saga(0, "suspended", 1)] * 4 + [saga(0, "completed", 14)])
    api.on("GET /questions", NOT_YET, ASKED)
    api.on("POST /sagas/s0/answer", (202, {"id": "s0", "status": "suspended", "version": 9}))
    scenario, screen = play(api, DemoPlan(sagas=1, thinks_s=0, tick_s=TICK_S), Workers())
    (answer,) = api.of("POST", "/sagas/s0/answer")
    assert answer.json == {"ask": "0.hold.f1", "action": "approve"}
    assert answer.headers["authorization"] == "Bearer of-another"
    says(screen.said[1])
    says.within(screen.said[2])
    assert scenario.course.started_ms <= scenario.course.approved_ms <= scenario.course.ended_ms


@pytest.mark.usefixtures("large")
def test_a_question_is_not_answered_before_its_moment_has_passed(api: FakeApi) -> None:
    prepared(api, [saga(0, "suspended", 1)] * 3 + [saga(0, "completed", 14)])
    api.on("GET /questions", ASKED)
    scenario, _ = play(api, DemoPlan(sagas=1, thinks_s=60, tick_s=TICK_S), Workers())
    assert (scenario.course.asking, scenario.course.approved_ms) == ("s0", 0)
    assert api.of("POST", "/sagas/s0/answer") == []


def test_the_saga_that_asks_is_neither_cancelled_nor_struck(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert evening(LARGE)["city"] not in {city for city, _ in KILLS}
    monkeypatch.setattr("baton.demo.scenario.LARGE", 0)
    monkeypatch.setattr("baton.demo.scenario.KILLS", ())
    prepared(api, [saga(0, "running", 9)] * 2 + [saga(0, "completed", 14)])
    scenario, _ = play(api, DemoPlan(sagas=1, tick_s=TICK_S), Workers())
    assert (scenario.course.asking, scenario.course.cancelled) == ("s0", "")


def test_a_worker_is_killed_when_a_service_has_acted_for_it_unheard(api: FakeApi, says: Says) -> None:
    prepared(api, [saga(0, "running", 1), saga(0, "running", 2), saga(0, "completed", 14)])
    api.on("GET /books/unanswered", (200, {"effects": [effect("hold"), effect("deposit")]}))
    workers = Workers(busy(7, 1500, "another"), busy(8, 1500, "the-request"))
    scenario, _ = play(api, DemoPlan(sagas=1, tick_s=TICK_S), workers)
    (kill,) = scenario.course.kills
    assert (workers.killed, kill.pid, kill.request_id) == ([8], 8, "the-request")
    assert (kill.saga, kill.effect) == ("s0", "deposit")
    says(kill.moment)
    assert [asked.json for asked in api.of("PUT", "/faults/lisbon")] == [[]], "no other answer is late"


def test_no_worker_is_killed_for_an_effect_of_another_kind_or_city(api: FakeApi) -> None:
    prepared(api, [saga(0, "running", 1), saga(0, "running", 2), saga(0, "completed", 14)])
    api.on("GET /books/unanswered", (200, {"effects": [effect("hold"), effect("confirm")]}))
    workers = Workers(busy(8, 1500, "the-request"))
    scenario, _ = play(api, DemoPlan(sagas=1, tick_s=TICK_S), workers)
    assert (workers.killed, scenario.course.kills) == ([], [])


def test_every_kill_is_of_a_worker_whose_answer_a_fault_holds_back(api: FakeApi) -> None:
    late = {
        (place, *fault["operations"])
        for place, found in service_faults().items()
        for fault in found
        if fault["kind"] == "late"
    }
    assert late == {("lisbon", "deposit"), ("porto", "confirm"), ("vienna", "hold")}
    assert {city.lower() for city, _ in KILLS} == {evening(n)["city"].lower() for n in range(len(KILLS))}


def test_a_saga_whose_worker_was_or_will_be_killed_has_to_go_on_and_is_not_cancelled(api: FakeApi) -> None:
    struck, to_be_struck = [saga(0, "running", 5)] * 3, [saga(1, "running", 5)] * 3
    prepared(api, [*struck, saga(0, "completed", 14)], [*to_be_struck, saga(1, "completed", 14)])
    either = [effect("deposit") | {"identity": {"reference": saga}} for saga in ("s0", "s1")]
    api.on("GET /books/unanswered", (200, {"effects": either}))  # one of them is in the city
    workers = Workers(busy(8, 1500, "the-request"))
    scenario, _ = play(api, DemoPlan(sagas=2, tick_s=TICK_S), workers)
    assert (workers.killed, scenario.course.cancelled) == ([8], "")


def planning(api: FakeApi, *effects: dict[str, Any]) -> None:
    """The agent's saga runs, in the hands of `its-request`, and `effects` were carried out for it."""
    running = (200, {"id": "planned", "status": "running", "steps": 9, "invocations": 1})
    done = (200, {"id": "planned", "status": "completed", "steps": 9, "invocations": 2})
    api.on("GET /sagas/planned", *[running] * 3, done)
    entries = [{"epoch": 0, "invocation": "api"}, {"epoch": 1, "invocation": "its-request.abc"}]
    api.on("GET /sagas/planned/events", (200, {"entries": entries, "next": None}))
    of_it = [{"kind": kind["kind"], "identity": {"reference": "planned"}, "at_ms": 7} for kind in effects]
    api.on("GET /books/unanswered", (200, {"effects": of_it}))


def test_the_worker_of_the_agent_is_killed_once_when_it_holds_a_table(api: FakeApi, says: Says) -> None:
    prepared(api, [saga(0, "running", 1)] * 4 + [saga(0, "completed", 14)])
    planning(api, effect("deposit"), effect("hold"))
    workers = Workers(busy(7, 5000, "another"), busy(8, 5000, "its-request"), busy(9, 1500, "its-request"))
    scenario, screen = play(api, DemoPlan(sagas=1, tick_s=TICK_S), workers)
    (kill,) = scenario.course.kills
    assert (len(workers.killed), kill.saga, kill.effect) == (1, "planned", "hold")
    says(re.sub(r"1\.\d s", "1.6 s", screen.said[-1]))


def test_the_worker_of_the_agent_is_left_alone_while_nothing_is_done_for_it_and_its_saga_is_not_cancelled(
    api: FakeApi,
) -> None:
    prepared(api, [saga(0, "running", 1)] * 2 + [saga(0, "completed", 14)])
    planning(api)
    workers = Workers(busy(8, 5000, "its-request"))
    scenario, _ = play(api, DemoPlan(sagas=1, tick_s=TICK_S), workers)
    assert (workers.killed, scenario.course.kills, scenario.course.cancelled) == ([], [], "")


def test_when_the_time_is_up_it_stops_and_says_what_it_saw(api: FakeApi) -> None:
    prepared(api, [saga(0, "running", 1)])
    scenario, _ = play(api, DemoPlan(sagas=1, limit_s=0.1, tick_s=TICK_S), Workers())
    assert scenario.course.ended_ms >= scenario.course.asked_to_end_by_ms


def test_progress_without_a_terminal_is_a_line_now_and_then() -> None:
    out = StringIO()
    sagas = {"s1": {"id": "s1", "status": "running", "steps": 3, "invocations": 1}}
    with Progress(Console(file=out, width=120), 14) as progress:
        progress.say("something happened")
        for _ in range(5):
            progress.update(sagas)
    assert out.getvalue().splitlines() == ["   0.0 s  something happened"]


def test_progress_on_a_terminal_draws_every_saga() -> None:
    out = StringIO()
    states = [("running", 3), ("completed", 14), ("cancelled", 5), ("suspended", 1)]
    sagas = {
        f"saga-{n}": {"id": f"saga-{n}", "status": status, "steps": steps, "active": [{"node": "hold"}]}
        for n, (status, steps) in enumerate(states)
    }
    with Progress(Console(file=out, width=120, force_terminal=True), 14) as progress:
        progress.update(sagas)
    for text in ("saga-0", "hold", " 3/14", "14/14", "cancelled", "suspended"):
        assert text in out.getvalue()


def test_the_summary_counts_by_status(says: Says) -> None:
    sagas = {
        str(n): {"status": status, "steps": 2, "invocations": 1}
        for n, status in enumerate(["running", "running", "completed"])
    }
    says(summary(sagas))
