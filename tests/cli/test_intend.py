"""`baton intend` and `baton warm`: what they send."""

from __future__ import annotations

from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

STARTED = (
    201,
    {"id": "s1", "status": "pending", "workflow": "concierge", "version": 1, "watch": "/sagas/s1"},
)


def test_it_posts_the_words_with_what_the_workflow_needs_besides_and_a_key(
    api: FakeApi, baton: Baton
) -> None:
    api.on("POST /intentions", STARTED)
    result = baton("intend", "Dinner for four.", "--set", "city=Vienna", "--key", "k1")
    assert result.exit_code == 0
    (asked,) = api.asked
    assert asked.json == {"words": "Dinner for four.", "input": {"city": "Vienna"}}
    assert asked.headers["idempotency-key"] == "k1"
    assert result.stdout == "s1  concierge, pending\n"
    assert "baton show s1 --watch" in result.stderr


def test_an_input_that_is_no_object_has_no_room_for_words(api: FakeApi, baton: Baton, says: Says) -> None:
    result = baton("intend", "Dinner.", "--input", "[1]")
    assert (result.exit_code, api.asked) == (2, [])
    says(result.stderr)


def test_a_tool_is_called_ahead_with_its_arguments(api: FakeApi, baton: Baton) -> None:
    api.on("POST /warm", STARTED)
    result = baton("warm", "table.search", "--set", "city=Vienna", "--set", "party=4")
    assert result.exit_code == 0, result.stderr
    (asked,) = api.asked
    assert asked.json == {"tool": "table.search", "arguments": {"city": "Vienna", "party": 4}}
    assert baton("warm", "table.search", "--input", "[1]").exit_code == 2
