"""`baton live`: what models write, as it comes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.cli.terminal.watching import Writer
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says


def text(words: str, node: str = "plan", item: str = "t1", iteration: tuple[int, ...] = ()) -> dict[str, Any]:
    return {
        "node": node,
        "iteration": list(iteration),
        "item": item,
        "began_at": "a",
        "at": "b",
        "text": words,
    }


def found(*texts: dict[str, Any], until: str | None = "2026-11-23T23:00:00.000Z") -> dict[str, Any]:
    return {"id": "s1", "watched_until": until, "texts": list(texts)}


def test_what_is_new_is_printed_until_the_saga_ends(api: FakeApi, baton: Baton, says: Says) -> None:
    answers = [
        found(),
        found(text("A table ")),
        found(text("A table ")),
        found(text("A table for four. ")),
        found(text("Done. ", item="t2")),
        found(until=None),
    ]
    api.on("GET /sagas/s1/live", *((200, one) for one in answers))
    says(baton("live", "s1").stdout)
    assert len(api.pauses) == 5


def test_with_json_each_change_is_a_line(api: FakeApi, baton: Baton) -> None:
    answers = [found(text("A ")), found(text("A ")), found(until=None)]
    api.on("GET /sagas/s1/live", *((200, one) for one in answers))
    lines = [json.loads(line) for line in baton("live", "s1", "--json").stdout.splitlines()]
    assert lines == [answers[0], answers[2]]


def test_a_busy_api_is_asked_again(api: FakeApi, baton: Baton) -> None:
    busy = (429, {"title": "Too many", "detail": "later"}, {"Retry-After": "3"})
    api.on("GET /sagas/s1/live", *[busy] * 20, (200, found(until=None)))
    assert baton("live", "s1").exit_code == 0


@pytest.mark.parametrize(
    ("texts", "printed"),
    [
        ([text("a " * 50), text("a " * 10 + "b ")], "\nplan t1:\n" + "a " * 50 + "… " + "a " * 10 + "b "),
        ([text("0123456789 " * 20 + "end "), text("89 " + "0123456789 " * 10 + "end more ")], None),
        ([text("x ", iteration=(1, 2), item="")], "\nplan@1@2:\nx "),
        ([text("\x1b[2Jx ")], "\nplan t1:\n\N{REPLACEMENT CHARACTER}[2Jx "),
    ],
)
def test_a_text_that_has_lost_its_beginning_goes_on_where_it_was(
    texts: list[dict[str, Any]], printed: str | None
) -> None:
    out: list[str] = []
    writer = Writer(out.append)
    for one in texts:
        writer.show(found(one))
    if printed is None:
        assert out[-1] == "more "
    else:
        assert "".join(out) == printed


def test_several_at_once_are_told_apart() -> None:
    out: list[str] = []
    writer = Writer(out.append)
    writer.show(found(text("a ", node="n1"), text("b ", node="n2")))
    writer.show(found(text("a c ", node="n1"), text("b ", node="n2")))
    assert "".join(out) == "\nn1 t1:\na \nn2 t1:\nb \nn1 t1:\nc "
