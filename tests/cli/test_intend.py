"""`baton intend`: what it sends."""

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
