"""Stream and queue are off, as if they lost everything: the reconciler alone finishes every saga, only later.

And what kills its worker, or needs more than any worker has, is parked, while its neighbours finish.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.deployment import FINAL, Deployment, chain, key_of, steps_in_log, until
from tests.kit.patience import PATIENCE_S

pytestmark = pytest.mark.e2e

WORKER_TIMEOUT_S = 4
STEPS = 14
STEP_S = 0.5  # all of them together take longer than two workers have
MINUTE_MS = 60_000
SWEEP_MS = 60 * MINUTE_MS
CHILD = chain("errand", 2, 0.1)
MIXED = """
name: mixed
nodes:
  first: {tool: trial.work, with: {n: 1, seconds: 0.2}}
  pause: {wait: {for: 1s}, after: first}
  errand: {workflow: errand, after: pause}
  answer: {wait: {signal: answer}, after: errand}
  last: {tool: trial.work, after: answer, with: {n: 2}}
output: "${ctx.answer.output}"
"""
KILLER = """
name: killer
nodes:
  fine: {tool: trial.work, with: {n: 1}}
  deadly: {tool: trial.kill, after: fine, with: {gate: deadly}}
"""
NEIGHBOUR = """
name: neighbour
nodes:
  s0: {tool: trial.held, with: {gate: s0}}
  s1: {tool: trial.work, after: s0}
  s2: {tool: trial.work, after: s1}
"""
ENDLESS = """
name: endless
nodes:
  slow: {tool: trial.forever}
"""
STUBBORN = """
name: stubborn
nodes:
  slow: {tool: trial.stubborn}
"""
BLOCKING = """
name: blocking
nodes:
  slow: {tool: trial.blocking}
"""


@dataclass(frozen=True)
class Cast:
    """The sagas of this module, by what they are here for."""

    deployment: Deployment
    chains: list[str]
    mixed: str
    killer: str
    neighbours: list[str]
    endless: str
    stubborn: str
    blocking: str


def killed_together(deployment: Deployment) -> tuple[str, list[str]] | None:
    """A saga that kills its worker, and the neighbours of its batch, each of them cut off in its first step."""
    killer = deployment.start("killer")
    neighbours = [deployment.start("neighbour") for _ in range(3)]
    batch = {"wakes": [{"saga": key_of(saga), "v": 1} for saga in [killer, *neighbours]]}
    killed = deployment.submit(deployment.run.invoke("WorkerFunction", batch))
    begun = deployment.books.begun
    until(
        lambda: (begun(killer)["deadly"] and all(begun(saga)["s0"] for saga in neighbours)) or killed.done(),
        "their steps",
    )
    deployment.books.open("deadly")
    error = killed.exception(PATIENCE_S)
    deployment.books.open("s0")
    return (killer, neighbours) if error is not None and "signal: kill" in str(error) else None


@pytest.fixture(scope="module")
def cast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    """All of them are started at once, so that they take their time together."""
    parameters = {
        "WorkerTimeout": str(WORKER_TIMEOUT_S),
        "WakeVisibility": "6",
        "LeaseGraceMs": "200",
        "ClockSkewMs": "200",
        "Shards": "2",  # each is a process of the reconciler
    }
    folder = tmp_path_factory.mktemp("reconciler-alone")
    off = frozenset({"stream", "queue"})
    with Deployment(folder, parameters, switched_off=off, schedule_period_s=1) as deployment:
        for document in (chain("long", STEPS, STEP_S), CHILD, MIXED, KILLER, ENDLESS, STUBBORN, BLOCKING):
            deployment.register(document)
        deployment.register(NEIGHBOUR)
        # A busy machine may have cut them off before all are at work: then others begin.
        killer, neighbours = until(
            lambda: killed_together(deployment), "a worker that is killed in its steps"
        )
        cast = Cast(
            deployment,
            chains=[deployment.start("long") for _ in range(3)],
            mixed=deployment.start("mixed"),
            killer=killer,
            neighbours=neighbours,
            endless=deployment.start("endless"),
            stubborn=deployment.start("stubborn"),
            blocking=deployment.start("blocking"),
        )
        # Their wakes are lost; a minute after its start a saga is due. That minute is over now.
        deployment.make_due(*cast.chains, cast.mixed, cast.endless, cast.stubborn, cast.blocking)
        yield cast


def test_every_saga_that_yields_several_times_is_finished_by_the_reconciler_alone(cast: Cast) -> None:
    for saga in cast.chains:
        shown = cast.deployment.wait_for(saga)
        assert shown["status"] == "completed", shown
        assert shown["invocations"] >= 3
        events = cast.deployment.events(saga)
        assert steps_in_log(events) == [f"s{n}" for n in range(STEPS)]
        assert cast.deployment.books.effects(saga) == Counter(f"s{n}" for n in range(STEPS))


def test_a_saga_that_is_not_finished_is_always_due_soon(cast: Cast) -> None:
    """Waits for a time, for a child, for a signal: with nothing else at work, the due index is its life line."""
    deployment, saga = cast.deployment, cast.mixed
    child = f"{saga}.0.errand"
    signalled = False
    give_up = time.monotonic() + PATIENCE_S
    while deployment.show(saga)["status"] not in FINAL:
        assert time.monotonic() < give_up, deployment.show(saga)
        for each in (saga, child):
            due_in_ms = due_in(deployment, each)
            assert due_in_ms is None or due_in_ms <= SWEEP_MS + MINUTE_MS
        waiting = [a for a in deployment.show(saga)["active"] if a["state"] == "waiting" and a["signal"]]
        if waiting and not signalled:
            answer = deployment.request("POST", f"/sagas/{saga}/signals/answer", json={"payload": "yes"})
            assert answer.status_code == 202
            signalled = True
        deployment.make_due(saga, child)  # let the time pass
    shown = deployment.show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "yes")
    assert steps_in_log(deployment.events(saga)) == ["first", "last"]
    assert steps_in_log(deployment.events(child)) == ["s0", "s1"]


def due_in(deployment: Deployment, saga: str) -> int | None:
    """Milliseconds until a saga is due; None for one that has ended or is not there."""
    head = deployment.head(saga)
    if head is None or head["st"]["S"] in FINAL:
        return None
    return int(head["due_at"]["N"]) - time.time_ns() // 1_000_000


def test_a_step_that_always_kills_its_worker_is_parked_after_three_tries(cast: Cast) -> None:
    shown = cast.deployment.wait_for(cast.killer, "parked", *FINAL)
    assert shown["status"] == "parked"
    assert shown["reason"].startswith("worker_killed: ")
    assert "deadly" in shown["reason"]
    assert cast.deployment.books.begun(cast.killer) == {"fine": 1, "deadly": 3}
    deaths = [e["dead"] for e in cast.deployment.events(cast.killer, "revived")]
    assert len(set(deaths)) == 3
    known = {record.request_id: record for record in cast.deployment.run.invocations}
    killed = [known[dead.partition(".")[0]] for dead in deaths]
    assert {record.outcome for record in killed} == {"killed"}
    assert [len(record.event["wakes"]) for record in killed] == [4, 1, 1]  # alone, once it had killed


def test_the_sagas_that_shared_a_batch_with_a_killer_finish(cast: Cast) -> None:
    for saga in cast.neighbours:
        shown = cast.deployment.wait_for(saga)
        assert shown["status"] == "completed", shown
        assert shown["revivals"] >= 1
        assert steps_in_log(cast.deployment.events(saga)) == ["s0", "s1", "s2"]
        assert cast.deployment.books.effects(saga) == {"s0": 1, "s1": 1, "s2": 1}
        # A step is done again only if it was cut off: once with the worker, or by a busy machine.
        cut_off = len(cast.deployment.events(saga, "step_interrupted"))
        assert 4 <= cast.deployment.books.begun(saga).total() <= 3 + shown["revivals"] + cut_off


@pytest.mark.parametrize("kind", ["endless", "stubborn"])
def test_a_step_that_needs_more_than_a_full_budget_is_parked_after_three_tries(kind: str, cast: Cast) -> None:
    saga = getattr(cast, kind)
    shown = cast.deployment.wait_for(saga, "parked", *FINAL)
    assert shown["status"] == "parked"
    assert shown["reason"].startswith("over_budget: ")
    assert shown["interruptions"] == 3
    cuts = cast.deployment.events(saga, "step_interrupted")
    # On a busy machine one of them may begin late in its invocation.
    assert any(cut["budget_ms"] > WORKER_TIMEOUT_S * 1_000 / 2 for cut in cuts)
    # A worker that a busy machine holds up is killed before it stops by itself, and its step begins once more.
    assert 3 <= cast.deployment.books.begun(saga)["slow"] <= 3 + shown["revivals"]


def test_a_parked_saga_is_left_alone_until_a_person_decides(cast: Cast) -> None:
    deployment, saga = cast.deployment, cast.endless
    deployment.wait_for(saga, "parked")
    # On a busy machine the notice of its parking is sent by a later look, or a worker yields once it is.
    until(lambda: deployment.events(saga, "notices_sent"), "the notice", 0.25)
    until(lambda: rests(deployment, saga), "the release")
    log, takes = deployment.log(saga), taken(deployment, saga)
    deployment.make_due(saga)
    until(lambda: due(deployment, saga) > time.time() * 1_000, "another look")
    assert (deployment.log(saga), taken(deployment, saga)) == (log, takes), "a look takes no lease"
    answer = deployment.request("POST", f"/sagas/{saga}/cancel", json={"mode": "forced"})
    assert answer.status_code == 202
    until(lambda: "owner" not in (deployment.head(saga) or {}), "the release")
    deployment.make_due(saga)
    assert deployment.wait_for(saga)["status"] == "cancelled"
    kinds = [event["kind"] for entry in deployment.log(saga)[len(log) :] for event in entry["events"]]
    assert kinds == ["cancel_requested", "saga_ended"]


def rests(deployment: Deployment, saga: str) -> bool:
    """Whether no worker holds the saga, and none is to take it: all that is left is to look at it now and then."""
    head = deployment.head(saga) or {}
    return "owner" not in head and head["due_shard"]["S"].startswith("DUE#sweep#")


def taken(deployment: Deployment, saga: str) -> int:
    """How often a worker has taken the saga."""
    head = deployment.head(saga)
    return int(head["epoch"]["N"]) if head is not None else 0


def due(deployment: Deployment, saga: str) -> int:
    """When it is looked at again."""
    head = deployment.head(saga)
    return int(head["due_at"]["N"]) if head is not None else 0


def test_no_worker_was_woken_by_stream_or_queue(cast: Cast) -> None:
    for saga in (*cast.chains, *cast.neighbours):
        cast.deployment.wait_for(saga)
    triggers = Counter((record.function, record.trigger) for record in cast.deployment.run.invocations)
    assert {trigger for function, trigger in triggers if function == "WorkerFunction"} == {"event", "invoke"}
    assert ("RelayFunction", "stream") not in triggers
    assert triggers["WorkerFunction", "invoke"] >= 1  # those of the batch


def test_a_plain_function_with_effects_is_dead_when_it_is_cut_off_and_its_worker_is_not(cast: Cast) -> None:
    shown = cast.deployment.wait_for(cast.blocking, "parked", *FINAL)
    assert shown["reason"].startswith("over_budget: ")
    assert shown["interruptions"] == 3
    deeds = cast.deployment.books.deeds(cast.blocking, "begun")
    assert 3 <= len(deeds) <= 3 + shown["revivals"]
    assert len({deed.pid for deed in deeds}) == len(deeds), "each time in a process of its own"
    assert not any(Path(f"/proc/{deed.pid}").exists() for deed in deeds)
    workers = {record.pid for record in cast.deployment.run.invocations}
    assert not workers & {deed.pid for deed in deeds}
