"""Findings of the doctor in a saga that its writers never leave so, and how each state is set right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core import recovery as core
from baton.core.limits import DAY_MS, Limits
from baton.core.log import events as ev
from baton.core.log import snapshots
from baton.core.log.codec import SCHEME, decode_entry, encode_entry
from baton.errors import CorruptLog, NotAllowedNow
from baton.runtime.recovery import Diagnosis
from tests.kit.corpus import start
from tests.kit.recovery_runs import TRIP
from tests.kit.sentences import Says
from tests.kit.tampering import (
    head_of,
    lose,
    lose_graph,
    rewrite_head,
    spoil,
    spoil_snapshots,
)
from tests.kit.world import World


async def waiting(**options: Any) -> tuple[World, str]:
    """A trip that has paid three times and waits for a signal."""
    world = World.start(**options)
    saga = await start(world, TRIP, {}, "trip")
    await asyncio.sleep(20)
    assert (head_of(world, saga).status, len(world.entries(saga))) == ("waiting", 4)
    return world, saga


async def diagnosed(world: World, saga: str) -> Diagnosis:
    return await world.service().diagnosis(saga, repairs=False)


def codes(found: Diagnosis) -> list[str]:
    return [one.code for one in found.findings]


async def finishes(world: World, saga: str) -> None:
    """The saga goes on by itself to where it waits, and to its end once the signal comes."""
    await asyncio.sleep(90)
    assert head_of(world, saga).status == "waiting"
    await world.service().signal(saga, "go", {}, "k")
    await world.settle()
    assert head_of(world, saga).status == "completed"
    assert sorted(world.books.happened) == sorted(set(world.books.happened))
    assert len(world.books.happened) == 3, "what was done before stays done"
    assert codes(await diagnosed(world, saga)) == []


def far(world: World) -> int:
    return world.process("clock").clock.now() + 40 * DAY_MS


HEADS: dict[str, tuple[str, Callable[[World], dict[str, Any]]]] = {
    "no due place": (core.NOT_DUE, lambda _: {"due_at": None}),
    "due in forty days": (core.DUE_TOO_LATE, lambda world: {"due_at": far(world)}),
    "A1: says that it asks, and nothing is asked": (core.STALE, lambda _: {"status": "suspended"}),
    "A2: says that it works, and it waits": (core.STALE, lambda _: {"status": "running", "group": "open"}),
    "A3: says that it is completed, and it waits": (
        core.STALE,
        lambda _: {"status": "completed", "group": "done"},
    ),
    "listed in another group": (core.STALE, lambda _: {"group": "open"}),
    "D2: names another branch": (core.STALE, lambda _: {"branch": 3}),
    "a lease for forty days": (
        core.LEASE_TOO_LONG,
        lambda world: {"owner": "w", "until": far(world), "due_at": far(world)},
    ),
}


@pytest.mark.parametrize("case", HEADS)
async def test_a_stale_head_is_found_and_set_right_in_place(case: str) -> None:
    code, change = HEADS[case]
    world, saga = await waiting()
    before = world.entries(saga)
    rewrite_head(world, saga, **change(world))
    assert codes(await diagnosed(world, saga)) == [code]
    answer = await world.service().resume(saga)
    assert answer["changed"]
    assert codes(await diagnosed(world, saga)) == []
    await asyncio.sleep(90)
    deaths = world.entries(saga)[len(before) :]
    assert [type(event) for entry in deaths for event in entry.events] == (
        [ev.Revived] if code == core.LEASE_TOO_LONG else []
    )
    head = head_of(world, saga)
    assert (head.status, head.group, head.branch, head.owner) == ("waiting", "waiting", 0, "")
    await finishes(world, saga)


@pytest.mark.parametrize("hurt", [spoil, lose], ids=["damaged", "missing"])
@pytest.mark.parametrize("version", [2, 3, 4])
async def test_a_saga_with_a_damaged_entry_goes_on_in_a_new_branch_and_repeats_no_effect(
    hurt: Callable[..., None], version: int
) -> None:
    world, saga = await waiting()
    hurt(world, saga, version)
    (finding,) = (await diagnosed(world, saga)).findings
    assert (finding.code, finding.repairable) == (core.UNREADABLE, True)
    await world.service().resume(saga)
    (entry,) = [one for one in read(world, saga) if isinstance(one.events[0], ev.WorkflowRecovered)]
    recovered, forked = entry.events
    assert isinstance(recovered, ev.WorkflowRecovered)
    assert isinstance(forked, ev.Forked)
    assert (recovered.first, recovered.last, forked.cut, forked.branch) == (version, version, version - 1, 1)
    assert (entry.version, entry.branch, forked.by) == (5, 0, "ann")
    slots = ["flight", "hotel", "car"]
    assert list(recovered.steps) == slots[version - 1 :]
    await finishes(world, saga)


def read(world: World, saga: str) -> list[ev.Entry]:
    """The entries of a saga that can be read."""
    found = []
    for (ref, _), entries in world.log._entries.items():
        for record in entries.values() if ref.id == saga else ():
            try:
                found.append(decode_entry(record.data))
            except CorruptLog:
                continue
    return sorted(found, key=lambda entry: entry.version)


async def test_a_worker_that_meets_a_damaged_entry_repairs_the_saga_without_being_asked() -> None:
    world, saga = await waiting()
    spoil(world, saga, 3)
    rewrite_head(world, saga, due_at=1, lane="work")
    await asyncio.sleep(90)
    assert world.dead_letters.count() == 0
    assert any(isinstance(entry.events[0], ev.WorkflowRecovered) for entry in read(world, saga))
    await finishes(world, saga)


async def test_the_log_and_no_snapshot_leads_past_the_damage() -> None:
    world, saga = await waiting()
    spoil(world, saga, 3)
    await world.service().resume(saga)
    await asyncio.sleep(90)
    spoil_snapshots(world, saga)
    rewrite_head(world, saga, snapshot=0)
    await finishes(world, saga)
    view = await world.queries().show(saga)
    assert (view["status"], view["branch"], "unreadable" in view) == ("completed", 1, False)
    page = await world.queries().events(saga, 0, 100)
    assert [(one["first"], one["last"]) for one in page["unreadable"]] == [(3, 3)]
    assert (await world.queries().cost(saga))["steps"] > 0


async def test_the_readable_part_of_a_damaged_log_is_shown() -> None:
    world, saga = await waiting()
    spoil(world, saga, 3)
    view = await world.queries().show(saga)
    assert (view["status"], view["version"]) == ("waiting", 2)
    assert (view["unreadable"]["first"], view["unreadable"]["last"]) == (3, 3)
    page = await world.queries().events(saga, 0, 100)
    assert [entry["version"] for entry in page["entries"]] == [1, 2, 4]
    for read_it in (world.queries().steps, world.queries().way):
        assert await read_it(saga, 0, 50)
    service = world.service()
    asks = (service.cancel(saga, "", 0), service.fork(saga, 1, ""), service.signal(saga, "go", {}, "k"))
    for ask in asks:
        with pytest.raises(NotAllowedNow, match=r"`baton doctor \w+ --repair`"):
            await ask


async def test_a_graph_that_is_gone_is_compiled_again_from_its_document() -> None:
    world, saga = await waiting()
    data = lose_graph(world, saga)
    found = await diagnosed(world, saga)
    assert (codes(found), found.findings[0].repairable) == ([core.GRAPH_LOST], True)
    with pytest.raises(NotAllowedNow):
        await world.service().cancel(saga, "", 0)
    await world.service().resume(saga)
    assert data in world.blobs.stored.values()
    await finishes(world, saga)


async def test_a_saga_without_its_graph_is_shown_as_head_and_log_have_it() -> None:
    world, saga = await waiting()
    before = await world.queries().show(saga)
    lose_graph(world, saga)
    shown = await world.queries().show(saga)
    assert "graph" in shown.pop("missing_graph")
    gone = {"active", "undo", "questions", "failing", "on_failure", "limits", "most_steps"}
    assert {name for name in before if shown[name] != before[name]} <= gone
    assert (shown["active"], shown["undo"]) == ([], None)
    await world.service().resume(saga)
    assert (await world.queries().show(saga))["active"] == before["active"]


async def test_a_worker_that_misses_a_graph_stores_it_again() -> None:
    world, saga = await waiting()
    lose_graph(world, saga)
    await asyncio.sleep(1)
    rewrite_head(world, saga, due_at=1, lane="work")
    await asyncio.sleep(90)
    assert world.dead_letters.count() == 0
    await finishes(world, saga)


@pytest.mark.parametrize("lost", ["document", "version", "tools"])
async def test_a_graph_whose_document_is_no_help_is_left_to_a_person_in_words(lost: str, says: Says) -> None:
    world, saga = await waiting()
    lose_graph(world, saga)
    definition = next(iter(world.store.definitions.versions("acme", "trip", 1)))
    if lost == "document":
        del world.blobs.stored["acme", definition.document]
    elif lost == "version":
        world.store.definitions._versions.clear()
    else:
        world.blobs.stored["acme", definition.document] = TRIP.replace("stall: c", "stall: d").encode()
        world.tools = {name: one for name, one in world.tools.items() if name != "rent"}
    (finding,) = (await diagnosed(world, saga)).findings
    assert (finding.code, finding.repairable) == (core.GRAPH_LOST, False)
    with says.raised(NotAllowedNow):
        await world.service().resume(saga)


EARLIER = """
name: w
nodes: {q: {wait: {signal: go}}, r: {after: q, wait: {signal: next}}, a: {after: r, value: 1}}
output: ${ctx.a.output}
"""
LATER = EARLIER.replace("value: 1}", "value: 2}")
BESIDE = EARLIER.replace("value: 1}", "value: 1}, beside: {tool: work, with: {n: 1}, after: q}")
ELSEWHERE = EARLIER.replace("r: {after: q", "x: {after: q, wait: {signal: then}}, r: {after: x")


async def change(world: World, saga: str, later: str, document: str = "") -> None:
    """The graph of another version for a saga, without a question."""
    service = world.service()
    graph = (await service.register(later, json_only=False)).definition.graph
    changed = ev.GraphChanged(graph=graph, workflow="w", by="ann", at=1, document=document)
    await service._request.append(await service._request.open(saga), lambda state, now: changed)


async def changed(later: str, *signals: str) -> tuple[World, str]:
    """A saga that runs another graph than it began with, of which nothing is left."""
    world = World.start()
    saga = await start(world, EARLIER, {}, "w")
    await asyncio.sleep(1)
    await change(world, saga, later)
    await asyncio.sleep(1)
    for name in signals:
        await world.service().signal(saga, name, {}, "k")
        await asyncio.sleep(5)
    newest = next(iter(world.store.definitions.versions("acme", "w", 1)))
    for lost in (SCHEME + newest.graph, newest.document):
        del world.blobs.stored["acme", lost]
    world._idle.clear()
    return world, saga


async def test_without_graph_and_document_the_saga_goes_on_with_the_graph_that_it_ran_before(
    says: Says,
) -> None:
    world, saga = await changed(LATER, "go")
    found = await diagnosed(world, saga)
    assert (codes(found), found.findings[0].repairable) == ([core.GRAPH_LOST], True)
    rewrite_head(world, saga, due_at=1, lane="work")
    await asyncio.sleep(90)
    assert world.dead_letters.count() == 0
    (gone_back,) = [one for one in world.events(saga) if isinstance(one, ev.GraphChanged)][1:]
    says(gone_back.reason)
    await world.service().signal(saga, "next", {}, "k")
    await asyncio.sleep(5)
    assert (await world.queries().show(saga))["result"] == 1
    for read_it in (world.queries().steps, world.queries().way, world.queries().events):
        assert await read_it(saga, 0, 50)
    assert await world.queries().cost(saga)
    assert (await world.service().replay(saga)).folded


@pytest.mark.parametrize("later", [ELSEWHERE, BESIDE], ids=["it stands elsewhere", "it was elsewhere"])
async def test_a_saga_that_the_graph_before_does_not_fit_is_left_to_a_person(later: str) -> None:
    world, saga = await changed(later, "go")
    (finding,) = (await diagnosed(world, saga)).findings
    assert (finding.code, finding.repairable) == (core.GRAPH_LOST, False)


async def test_a_patched_graph_is_compiled_again_from_its_own_document() -> None:
    world = World.start()
    saga = await start(world, EARLIER, {}, "w")
    await asyncio.sleep(1)
    text = LATER.encode()
    document = (await asyncio.to_thread(world.blobs.put, "acme", text)).removeprefix(SCHEME)
    await change(world, saga, LATER, document)
    world.store.definitions._versions["acme", "w"].pop(2)
    await asyncio.sleep(1)
    lost = world.blobs.stored.pop(("acme", SCHEME + (await world.queries().show(saga))["graph"]))
    world._idle.clear()
    await world.service().resume(saga)
    assert lost in world.blobs.stored.values()


async def test_nothing_stable_is_left_to_a_person_and_to_a_dead_letter(says: Says) -> None:
    world, saga = await waiting()
    spoil(world, saga, 1)
    spoil_snapshots(world, saga)
    found = await diagnosed(world, saga)
    assert (codes(found), found.findings[0].repairable, found.version) == ([core.NOTHING_STABLE], False, 0)
    with says.raised(NotAllowedNow):
        await world.service().resume(saga)
    rewrite_head(world, saga, due_at=1, lane="work")
    await asyncio.sleep(90)
    assert world.dead_letters.count() == 1


async def test_entries_of_a_newer_release_are_never_left_behind(says: Says) -> None:
    world, saga = await waiting()
    spoil(world, saga, 3, b'{"format":2,"version":3,"events":[]}')
    (finding,) = (await diagnosed(world, saga)).findings
    assert (finding.code, finding.repairable) == (core.NEWER_RELEASE, False)
    with says.raised(NotAllowedNow):
        await world.service().resume(saga)


async def test_an_entry_that_some_release_may_have_written_is_left_behind_only_if_a_person_asks() -> None:
    world, saga = await waiting()
    spoil(world, saga, 3, b'{"format":1,"version":3,"at":1,"invocation":"i","events":7}')
    rewrite_head(world, saga, due_at=1, lane="work")
    await asyncio.sleep(90)
    assert world.dead_letters.count() == 1
    assert not any(isinstance(entry.events[0], ev.WorkflowRecovered) for entry in read(world, saga))
    await world.service().resume(saga)
    await finishes(world, saga)


async def test_a_healthy_saga_is_not_touched_and_the_caller_hears_so() -> None:
    world, saga = await waiting()
    before = head_of(world, saga), len(world.plan.writes)
    assert not (await world.service().resume(saga))["changed"]
    assert (head_of(world, saga), len(world.plan.writes)) == before


async def test_a_cancel_behind_the_damage_holds() -> None:
    world, saga = await waiting()
    world.reconciler_on = world.stream_on = False
    await world.service().cancel(saga, "not wanted", 0)
    spoil(world, saga, 3)
    world.stream_on = True
    await world.service().resume(saga)
    await world.settle()
    assert head_of(world, saga).status == "cancelled"


async def test_an_ended_saga_stays_ended_and_can_be_forked_again() -> None:
    world, saga = await waiting()
    await world.service().signal(saga, "go", {}, "k")
    await world.settle()
    result = (await world.queries().show(saga))["result"]
    spoil(world, saga, 4)
    view = await world.queries().show(saga)
    assert (view["status"], view["version"]) == ("completed", 3)
    with pytest.raises(NotAllowedNow):
        await world.service().fork(saga, 2, "")
    await world.service().resume(saga)
    await asyncio.sleep(120)
    view = await world.queries().show(saga)
    assert (view["status"], view["result"], head_of(world, saga).due_at) == ("completed", result, None)
    await world.service().fork(saga, 2, "")
    await finishes(world, saga)


async def test_entries_lost_at_the_end_are_noticed_by_their_head() -> None:
    world, saga = await waiting()
    lose(world, saga, 4)
    assert codes(await diagnosed(world, saga)) == [core.UNREADABLE]
    await world.service().resume(saga)
    await finishes(world, saga)


async def test_two_doctors_at_once_make_one_recovery() -> None:
    world, saga = await waiting()
    spoil(world, saga, 3)
    await asyncio.gather(*(world.service().diagnosis(saga, repairs=True) for _ in range(5)))
    recoveries = [one for one in read(world, saga) if isinstance(one.events[0], ev.WorkflowRecovered)]
    assert len(recoveries) == 1
    await finishes(world, saga)


async def test_what_a_worker_does_meanwhile_is_no_finding() -> None:
    world = World.start()
    saga = await start(world, TRIP, {}, "trip")
    for _ in range(300):
        await asyncio.sleep(0.05)
        assert codes(await diagnosed(world, saga)) == []


async def test_a_fork_behind_the_damage_decides_where_the_saga_goes_on() -> None:
    world, saga = await waiting()
    await world.service().fork(saga, 2, "again")
    await asyncio.sleep(30)
    spoil(world, saga, 4)
    spoil_snapshots(world, saga)
    (finding,) = (await diagnosed(world, saga)).findings
    assert finding.code == core.UNREADABLE
    await world.service().resume(saga)
    (entry,) = [one for one in read(world, saga) if isinstance(one.events[0], ev.WorkflowRecovered)]
    assert isinstance(entry.events[1], ev.Forked)
    assert (entry.branch, entry.events[1].cut, entry.events[1].branch) == (1, 2, 2)
    await finishes(world, saga)


# ---- many sagas, and replays


async def test_all_open_sagas_are_diagnosed_and_repaired_page_by_page() -> None:
    world, first = await waiting()
    sagas = [first]
    for number in range(4):
        view, _ = await world.service().start("trip", {}, f"more-{number}")
        sagas.append(view["id"])
    await asyncio.sleep(30)
    rewrite_head(world, sagas[1], due_at=None)
    spoil(world, sagas[3], 3)
    found, cursor, examined = dict[str, list[str]](), "", 0
    while True:
        page = await world.service().diagnoses(repairs=False, limit=2, cursor=cursor)
        found |= {one.id: codes(one) for one in page.sagas}
        examined += page.examined
        if page.next is None:
            break
        cursor = page.next
    assert examined == 5
    assert found == {sagas[1]: [core.NOT_DUE], sagas[3]: [core.UNREADABLE]}
    page = await world.service().diagnoses(repairs=True, limit=100, cursor="")
    assert {one.id: [two.code for two in one.repaired] for one in page.sagas} == found
    assert (await world.service().diagnoses(repairs=False, limit=100, cursor="")).sagas == []


async def test_a_replay_folds_and_decides_again_and_finds_the_log_as_it_is() -> None:
    world, saga = await waiting()
    replayed = await world.service().replay(saga)
    assert (replayed.folded, replayed.decided, replayed.divergence) == (4, 3, None)


@pytest.mark.parametrize("at", ["decision", "log", "head", "snapshot"])
async def test_a_replay_shows_the_first_place_that_differs(at: str) -> None:
    world, saga = await waiting(limits=Limits(snapshot_tail_bytes=300))
    snapshot = head_of(world, saga).snapshot
    assert snapshot
    if at == "decision":
        entry = world.entries(saga)[2]
        (done, *_) = entry.events
        assert isinstance(done, ev.StepSucceeded)
        turned = tuple(replace(token, dst="yes") for token in done.emits)
        spoil(world, saga, 3, encode_entry(replace(entry, events=(replace(done, emits=turned),))))
    elif at == "log":
        lose(world, saga, 3)
    elif at == "head":
        rewrite_head(world, saga, status="suspended")
    else:
        state = replace(snapshots.decode_state(stored_snapshot(world, saga)), stood=7)
        for (ref, _), known in world.log._snapshots.items():
            if ref.id == saga:
                known[snapshot] = replace(known[snapshot], data=snapshots.encode_state(state))
    divergence = (await world.service().replay(saga)).divergence
    assert divergence is not None
    assert divergence.at == at
    assert divergence.version == {"decision": 3, "log": 3, "head": 4, "snapshot": snapshot}[at]


def stored_snapshot(world: World, saga: str) -> bytes:
    return next(
        max(known.items())[1].data for (ref, _), known in world.log._snapshots.items() if ref.id == saga
    )


async def test_a_load_goes_on_from_an_older_snapshot_where_log_and_newest_snapshot_are_damaged() -> None:
    world, saga = await waiting(limits=Limits(snapshot_tail_bytes=300))
    known = next(one for (ref, _), one in world.log._snapshots.items() if ref.id == saga)
    newest = max(known)
    known[newest - 1] = replace(known[newest], version=newest - 1)
    known[newest] = replace(known[newest], data=b"garbage")
    spoil(world, saga, 1)
    assert (await world.queries().show(saga))["status"] == "waiting"
    assert codes(await diagnosed(world, saga)) == []
    await finishes(world, saga)
