"""A saga is named by the beginning of its id, if that is of one saga only."""

from __future__ import annotations

from typing import Any

import pytest

from baton.client.connection import full_saga_id
from baton.client.exits import CommandFailed
from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_lists import page, saga
from tests.cli.test_show import SAGA
from tests.kit.sentences import Says

ONE, TWO, CHILD = (
    "ke86ac0b2fc999c27f7bdbc0e5",
    "ke869d1f0b4a7726c35e1b0a97",
    "kf1d7e5b4f7a64f2c6c87bb0e3.0.send",
)
LIST = (saga(ONE), saga(f"{ONE}.0.send"), saga(f"{ONE}.0.send.0.x"), saga(TWO), saga(CHILD))


def missing(name: str) -> tuple[int, dict[str, Any]]:
    return 404, {"title": "No", "detail": f"there is no saga `{name}`"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("ke86a", ONE),
        (ONE, ONE),
        ("ke86a.0.send", f"{ONE}.0.send"),
        ("ke86a.0.send.0", f"{ONE}.0.send.0.x"),
        ("ke869", TWO),
        ("kf1d", CHILD.partition(".")[0]),
        ("kf1d.0", CHILD),
        ("ke869.0", None),
        ("soup", None),
    ],
)
def test_a_beginning_means_the_only_saga_that_has_it_and_not_its_children(
    given: str, meant: str | None
) -> None:
    assert full_saga_id(given, LIST) == meant


def test_a_beginning_of_several_sagas_names_them(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /sagas/ke86/cancel", missing("ke86"))
    api.on("GET /sagas", page(*LIST))
    result = baton("cancel", "ke86")
    assert result.exit_code == 2
    says(result.stderr)
    assert f"{ONE}  dinner, running" in result.stderr
    assert f"{TWO}  dinner, running" in result.stderr


def test_many_sagas_of_one_beginning_are_counted() -> None:
    with pytest.raises(CommandFailed) as refused:
        full_saga_id("k", [saga(f"k{n}") for n in range(12)])
    assert refused.value.more[-1] == "and 2 more"


def test_a_beginning_is_looked_up_once_and_a_whole_id_never(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/ke86a/explain", missing("ke86a"))
    api.on("GET /sagas", page(*LIST[:2], then="c"), page(*LIST[2:]))
    steps: dict[str, Any] = {"steps": [], "open": [], "end": None}
    api.on(f"GET /sagas/{ONE}/explain", (200, steps | {"next": 4}), (200, steps | {"next": None}))
    assert baton("explain", "ke86a").exit_code == 0
    assert [asked.path for asked in api.asked] == [
        "/sagas/ke86a/explain",
        "/sagas",
        "/sagas",
        f"/sagas/{ONE}/explain",
        f"/sagas/{ONE}/explain",
    ]
    api.on(f"GET /sagas/{ONE}", (200, SAGA))
    api.asked.clear()
    assert baton("show", ONE).exit_code == 0
    assert len(api.asked) == 1


def test_what_was_done_names_the_whole_id(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/kf1d.0/signals/go", missing("kf1d.0"))
    api.on(f"POST /sagas/{CHILD}/signals/go", (202, {"id": CHILD, "status": "running", "version": 3}))
    api.on("GET /sagas", page(*LIST))
    assert baton("signal", "kf1d.0", "go").stdout == f"{CHILD}  was sent go\n"


@pytest.mark.parametrize(
    ("given", "answer"),
    [("soup", page(*LIST)), ("ke8", page(*LIST)), ("ke86a", (403, {"title": "No"})), (ONE, page(*LIST))],
)
def test_what_begins_no_id_is_refused_as_the_api_refused_it(
    api: FakeApi, baton: Baton, given: str, answer: tuple[int, Any], says: Says
) -> None:
    api.on(f"GET /sagas/{given}", missing(given))
    api.on("GET /sagas", answer)
    result = baton("show", given)
    assert result.exit_code == 3
    says(result.stderr)


def test_a_beginning_that_is_too_short_says_so(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/ke8", missing("ke8"))
    result = baton("show", "ke8")
    assert result.exit_code == 3
    says(result.stderr)
    assert [asked.path for asked in api.asked] == ["/sagas/ke8"], "nothing is looked up"
