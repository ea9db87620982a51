"""The dinner document: it compiles, and it is long and wide enough to show what Baton is for."""

from __future__ import annotations

from pathlib import Path

import pytest

import sagas
from baton.cli.documents.app import documents, load_app
from baton.cli.machine import demonstrating
from baton.core.conditions.schema import violations
from baton.core.documents.compile import compile_document
from baton.core.documents.text import parse_document
from baton.core.effects.toolspec import request_for
from baton.core.graph.graph import Graph, Node
from baton.demo.promises import EFFECT_OF
from baton.demo.scenario import LARGE, evening
from baton.tools.define import REGISTRY
from examples.services import open_delivery, table_stack, tables

WORKER_S = 6
RESERVE_S = 1


def dinner() -> Graph:
    (path,) = [path for path in documents(sagas) if path.name == "dinner.yaml"]
    return compile_document(Path(path).read_text(encoding="utf-8"), REGISTRY.specs())


INSTEAD = {"waitlist", "quote_dinner", "order_dinner", "give_back"}


def as_planned(graph: Graph) -> list[Node]:
    """The nodes that run where no service fails."""
    return [node for node in graph.nodes if node.name not in INSTEAD]


def seconds(graph: Graph) -> dict[str, float]:
    """How long each node takes in the services, by default."""
    delays = {"table": table_stack.DELAYS, "bar": table_stack.DELAYS, "delivery": open_delivery.DELAYS}
    split = {node.name: node.tool.partition(".") for node in graph.nodes}
    return {
        name: delays.get(family, {}).get(operation, 0.0) for name, (family, _, operation) in split.items()
    }


def test_the_application_and_its_documents_are_found_by_name() -> None:
    assert load_app("sagas") is sagas
    assert [path.name for path in documents(sagas)] == [
        "concierge.yaml",
        "dinner.yaml",
        "evening.yaml",
        "look.yaml",
    ]


def test_it_has_ten_or_more_steps_of_a_fifth_of_a_second_to_a_second() -> None:
    calling = [time for time in seconds(dinner()).values() if time]
    assert len(calling) >= 10
    assert all(0.2 <= time <= 1 for time in calling)


def test_the_demo_counts_the_steps_of_an_evening_in_which_nothing_fails() -> None:
    (path,) = [path for path in documents(sagas) if path.name == "dinner.yaml"]
    nodes = parse_document(path.read_text(encoding="utf-8")).value["nodes"]
    assert demonstrating.as_planned(nodes) == len(as_planned(dinner())) == 14


def test_its_longest_path_needs_more_than_one_short_invocation() -> None:
    graph = dinner()
    times = seconds(graph)
    done: dict[str, float] = {}
    for node in as_planned(graph):
        done[node.name] = times[node.name] + max(
            (done[before] for before in node.before if before in done), default=0
        )
    assert WORKER_S - RESERVE_S < max(done.values()) < 2 * (WORKER_S - RESERVE_S)


def test_it_has_parallel_siblings_and_a_join_of_all_of_them() -> None:
    nodes = {node.name: node for node in dinner().nodes}
    planned = {node.name for node in as_planned(dinner())}
    assert len(planned & set(nodes["hold"].after)) == 3
    assert set(nodes["confirm"].before) == {"deposit", "order_wine", "order_cake"}


def test_the_inputs_of_the_demo_match_its_schema_and_differ() -> None:
    schema = dinner().input_schema
    evenings = [evening(n) for n in range(200)]
    assert [violations(schema, value) for value in evenings] == [()] * 200
    assert len({(value["city"], value["at"]) for value in evenings}) == 200


def test_every_tool_with_an_effect_is_one_that_the_demo_compares_with_the_books() -> None:
    graph = dinner()
    acting = {node.tool for node in graph.nodes if node.effect != "pure"}
    assert acting - {"dinner.give_back"} == set(EFFECT_OF)


@pytest.mark.parametrize("party", range(1, 13))
def test_an_evening_asks_once_for_a_party_above_eight_before_it_holds_a_table_and_else_not_at_all(
    party: int,
) -> None:
    """By the default rules. A later question, about the deposit, would outlast the hold that it is for."""
    given = {
        "table.hold": {"table": "lisbon/lantern/6", "party": party, "at": "2026-12-24T19:30:00Z"},
        "table.deposit": {"hold": "hold-1", "amount_cents": party * tables.DEPOSIT_CENTS_PER_GUEST},
    }
    risky = {node.tool for node in dinner().nodes if node.approval is not None}
    assert risky == set(given)
    asking = [tool for tool, sent in given.items() if request_for(tool, sent, REGISTRY.specs()[tool])]
    assert asking == (["table.hold"] if party > 8 else [])


def test_one_evening_of_the_demo_asks_of_however_many() -> None:
    assert [n for n in range(200) if evening(n)["party"] > 8] == [LARGE]


@pytest.mark.parametrize("path", documents(sagas), ids=lambda path: path.stem)
def test_a_document_says_in_one_place_what_it_is(path: Path) -> None:
    assert parse_document(path.read_text(encoding="utf-8")).value["name"] == path.stem
