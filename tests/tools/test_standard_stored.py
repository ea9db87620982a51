"""`std.upsert`, `std.get`, `std.put_object`, `std.get_object` and `std.notify`, as steps see them.

What stores do under them is in the contracts (tests/contract/test_outside.py); that a mail is sent once is the engine's.
"""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.memory.outside import MemoryEntities, MemoryMailer, MemoryObjects
from baton.core.effects.keys import key_of
from baton.tools.standard import Services, standard_tools
from tests.kit.sentences import Says
from tests.tools.outside import context, failure, perform, services


@pytest.fixture
def kept() -> Services:
    return services(entities=MemoryEntities(), objects=MemoryObjects())


# ---- entities ------------------------------------------------------------------------------------------------


def upsert(kept: Services, key: str, data: Any, **more: Any) -> Any:
    return perform("std.upsert", kept, context(key), type="order", id="o-1", data=data, **more)


def test_an_upsert_that_is_repeated_changes_nothing_and_has_the_same_version(kept: Services) -> None:
    first = upsert(kept, "a", {"n": 1})
    nothing = {"version": 0, "data": None}
    assert first == {"type": "order", "id": "o-1", "version": 1, "changed": True, "before": nothing}
    assert upsert(kept, "a", {"n": 1}) == first | {"changed": False}
    assert upsert(kept, "b", {"n": 2})["version"] == 2
    assert upsert(kept, "a", {"n": 1}) == first | {"changed": False, "before": None}
    found = perform("std.get", kept, type="order", id="o-1")
    assert found == {"type": "order", "id": "o-1", "version": 2, "data": {"n": 2}}


def test_an_upsert_that_expects_another_version_is_a_conflict(kept: Services, says: Says) -> None:
    upsert(kept, "a", 1, expected_version=0)
    for expected in (0, 2):
        error = failure(
            "std.upsert", kept, context("b"), type="order", id="o-1", data=2, expected_version=expected
        )
        assert error.code == "conflict"
        says(error.message)
    assert upsert(kept, "b", 2, expected_version=1)["version"] == 2


def test_what_is_not_written_yet_is_at_version_0(kept: Services) -> None:
    assert perform("std.get", kept, type="order", id="o-1")["version"] == 0


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("input_invalid", {"type": "T#other"}), ("input_invalid", {"type": "~latest"}), ("input_invalid", {"id": ""}),
        ("input_invalid", {"expected_version": -1}), ("input_too_large", {"data": "x" * 100_000}),
    ],
)  # fmt: skip
def test_what_is_no_entity_is_refused(kept: Services, code: str, wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"type": "order", "id": "o-1", "data": 1} | wrong
    assert failure("std.upsert", kept, **given).code == code


def test_tenants_have_entities_and_objects_of_their_own(kept: Services) -> None:
    upsert(kept, "a", 1)
    perform("std.put_object", kept, name="a", text="soup")
    other = context(tenant="globex")
    assert perform("std.get", kept, other, type="order", id="o-1")["version"] == 0
    assert failure("std.get_object", kept, other, name="a").code == "file_not_found"


# ---- objects -------------------------------------------------------------------------------------------------


def put(kept: Services, key: str, **content: Any) -> Any:
    return perform("std.put_object", kept, context(key), name="reports/march", **content)


def test_the_same_content_is_written_once_and_the_name_points_to_the_newest(kept: Services) -> None:
    first = put(kept, "a", text="soup")
    assert (first["written"], first["size"], first["latest"]) == (True, 4, 1)
    assert put(kept, "a", text="soup") == first
    second = put(kept, "b", text="salad")
    assert (second["written"], second["latest"]) == (True, 2)
    assert perform("std.get_object", kept, name="reports/march")["text"] == "salad"
    old = perform("std.get_object", kept, name="reports/march", sha256=first["sha256"])
    assert old == {
        "name": "reports/march", "sha256": first["sha256"], "size": 4, "text": "soup", "base64": None,
    }  # fmt: skip


def test_an_old_attempt_that_comes_late_does_not_point_the_name_back(kept: Services) -> None:
    put(kept, "a", text="soup")
    put(kept, "b", text="salad")
    assert put(kept, "a", text="soup")["latest"] == 1
    assert perform("std.get_object", kept, name="reports/march")["text"] == "salad"


def test_content_is_text_bytes_or_json(kept: Services) -> None:
    put(kept, "a", base64="/+8=")
    assert perform("std.get_object", kept, name="reports/march")["base64"] == "/+8="
    same = [put(kept, key, json=value)["sha256"] for key, value in (("b", {"a": 1, "b": 2}), ("c", {"b": 2, "a": 1}))]  # fmt: skip
    assert same[0] == same[1]
    assert perform("std.get_object", kept, name="reports/march")["text"] == '{"a":1,"b":2}'


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"text": "a", "json": 1}, {"base64": "%"}, {"text": "a", "name": "../x"}, {"text": "a", "name": "/x"},
        {"text": "a", "name": "a//b"}, {"text": "a", "content_type": "text\r\nx: y"},
    ],
)  # fmt: skip
def test_what_is_no_object_is_refused(kept: Services, wrong: dict[str, Any]) -> None:
    assert failure("std.put_object", kept, **{"name": "a", **wrong}).code == "input_invalid"


def test_what_is_not_there_is_said(kept: Services) -> None:
    put(kept, "a", text="soup")
    assert failure("std.get_object", kept, name="other").code == "file_not_found"
    assert failure("std.get_object", kept, name="reports/march", sha256="0" * 64).code == "file_not_found"


@pytest.mark.parametrize(
    ("tool", "given"),
    [("std.upsert", {"type": "a", "id": "b", "data": 1}), ("std.put_object", {"name": "a", "text": "x"})],
)
def test_nothing_is_written_without_a_key(kept: Services, tool: str, given: dict[str, Any]) -> None:
    assert failure(tool, kept, context(""), **given).code == "input_invalid"


# ---- mail ----------------------------------------------------------------------------------------------------

LETTER: dict[str, Any] = {"to": "ada@home.example", "subject": "Tonight", "text": "At 8."}


def test_a_mail_goes_to_one_person_from_the_deployments_address() -> None:
    mailer = MemoryMailer()
    of = services(mailer=mailer, mail_from="desk@lantern.example")
    assert perform("std.notify", of, **LETTER) == {"message": "letter-1", "to": "ada@home.example"}
    (sent,) = mailer.sent
    assert (sent.sender, sent.to, sent.subject, sent.text) == ("desk@lantern.example", *LETTER.values())


def test_the_same_mail_to_the_same_person_has_one_key_for_a_day() -> None:
    rule = standard_tools()["std.notify"].spec.key
    assert rule.keep_ms == 86_400_000

    def key(user: str = "ada", saga: str = "s1", at: int = 0, **changes: str) -> str:
        given = LETTER | changes
        return key_of(
            rule,
            tenant="acme",
            user=user,
            saga=saga,
            node="tell",
            tool="std.notify",
            parameters=given,
            occurrence=(),
            at=at,
        )

    assert key() == key(user="eve", saga="s2", at=10**12)
    assert len({key(), key(to="b@c.d"), key(subject="x"), key(text="y"), key(html="z")}) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": "ada"}, {"to": "a@b, c@d"}, {"to": "A <a@b>"}, {"subject": "x\nBcc: c@d"}, {"subject": ""},
        {"text": ""}, {"to": ["a@b"]},
    ],
)  # fmt: skip
def test_what_is_no_mail_is_not_sent(wrong: dict[str, Any]) -> None:
    mailer = MemoryMailer()
    error = failure("std.notify", services(mailer=mailer, mail_from="a@b.c"), **LETTER | wrong)
    assert (error.code, mailer.sent) == ("input_invalid", [])


def test_without_an_address_to_send_from_the_failure_says_what_to_set() -> None:
    error = failure("std.notify", services(mailer=MemoryMailer()), **LETTER)
    assert (error.code, "MailFrom" in error.message) == ("input_invalid", True)
