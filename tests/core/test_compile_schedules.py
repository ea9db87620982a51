"""A document's `schedule`: what it becomes in the graph, and what is wrong with it, each with its place."""

from __future__ import annotations

import pytest

from baton.core.documents.compile import compile_document
from baton.core.graph.graph import QUEUE, Schedule, encode_graph
from baton.errors import InvalidDefinition
from tests.kit.sentences import Says

HEAD = """name: report
input: {type: object, required: [day], properties: {day: {type: string}}}
nodes: {a: {value: 1}}
"""
PLAIN = "name: report\nnodes: {a: {value: 1}}\n"


def wrong(schedule: str, head: str = HEAD) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidDefinition) as refused:
        compile_document(f"{head}schedule: {schedule}\n", {})
    return [(one.path, one.message, one.suggestion) for one in refused.value.problems]


def test_a_schedule_is_a_part_of_the_graph_and_none_leaves_it_as_it_was() -> None:
    graph = compile_document(HEAD + "schedule: {cron: '0 18 * * FRI', input: {day: '${schedule.time}'}}", {})
    assert graph.schedule == Schedule(cron="0 18 * * fri", input={"day": "${schedule.time}"})
    assert b"schedule" not in encode_graph(compile_document(PLAIN, {}))


def test_short_forms() -> None:
    assert compile_document(PLAIN + "schedule: '@daily'", {}).schedule == Schedule(cron="@daily")
    assert compile_document(PLAIN + "schedule: {rate: 5 minutes}", {}).schedule == Schedule(rate=300_000)


def test_a_queue_has_room_for_more() -> None:
    queue = compile_document(PLAIN + "schedule: {rate: 1h, overlap: queue}", {}).schedule
    assert queue == Schedule(rate=3_600_000, overlap=QUEUE, catch_up=10)
    assert compile_document(
        PLAIN + "schedule: {rate: 1h, overlap: queue, catch_up: 0}", {}
    ).schedule == Schedule(rate=3_600_000, overlap=QUEUE, catch_up=0)


@pytest.mark.parametrize(
    ("schedule", "path", "suggested"),
    [
        ("{}", "/schedule", ""),
        ("{cron: '@daily', rate: 1h}", "/schedule", ""),
        ("{rate: 10s}", "/schedule/rate", ""),
        ("{cron: '0 18 * *'}", "/schedule/cron", ""),
        ("{cron: '@daily', timezone: Europe/Berln}", "/schedule/timezone", "`Europe/Berlin`"),
        ("{cron: '@daily', timezone: 5}", "/schedule/timezone", ""),
        ("{cron: '@daily', timezone: Middle_Earth}", "/schedule/timezone", "Europe/Berlin"),
        ("{rate: 1h, timezone: UTC}", "/schedule/timezone", "leave it out"),
        ("{rate: 1h, overlap: skp}", "/schedule/overlap", "`skip`"),
        ("{rate: 1h, catch_up: 5}", "/schedule/catch_up", "`overlap: queue`"),
        ("{rate: 1h, catch_up: 101}", "/schedule/catch_up", ""),
        ("{rate: 1h, every: 5m}", "/schedule/every", "rate"),
        ("{rate: 1h, input: {n: '${input.n}'}}", "/schedule/input/n", ""),
        ("{rate: 1h, input: {n: '${schedule.when}'}}", "/schedule/input/n", ""),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(
    schedule: str, path: str, suggested: str, says: Says
) -> None:
    (found,) = wrong(schedule, PLAIN)
    assert found[0] == path
    says(found[1])
    assert suggested in found[2]


def test_an_input_that_the_workflow_refuses_is_told() -> None:
    assert wrong("{rate: 1h}")[0][0] == "/schedule/input"
    assert "refuses it" in wrong("{rate: 1h, input: {day: 5}}")[0][1]
    assert wrong("{rate: 1h, input: {day: 5}}")[0][0] == "/schedule/input/day"


def test_an_input_is_bounded(says: Says) -> None:
    ((path, said, _),) = wrong(f"{{rate: 1h, input: {'x' * 8_200}}}", PLAIN)
    assert path == "/schedule/input"
    says(said)


def test_a_saga_does_not_know_its_schedule(says: Says) -> None:
    with says.raised(InvalidDefinition):
        compile_document("name: report\nnodes: {a: {value: '${schedule.time}'}}", {})
