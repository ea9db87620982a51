"""Values that are kept as blobs: fetched through a saga whose log names them, and through no other."""

from __future__ import annotations

import json

import pytest

from baton.core.log.events import NodePassed, SagaEnded, Value
from baton.ports import SagaRef
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, GRACE, PARTY, append, begin
from tests.kit.sentences import Says

LONG = {"text": "Grüße " * 2_000}


def kept(http: Http, value: object, ref: SagaRef = ADA) -> Value:
    data = json.dumps(value, ensure_ascii=False).encode()
    return Value(ref=http.engine.blobs.put(ref.tenant, data), size=len(data))


def path(value: Value, ref: SagaRef = ADA) -> str:
    return f"/sagas/{ref.id}/values/{value.ref.rpartition('/')[2]}"


def test_a_value_is_fetched_by_the_digest_that_an_entry_names(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    value = kept(http, LONG)
    assert http.get(path(value)).problem(404, "not-found")["detail"].endswith(value.ref)
    append(http.engine, NodePassed(node="guests", output=value, keep=False))
    shown = http.get(path(value)).body
    assert shown == {"ref": value.ref, "size": value.size, "value": LONG, "part": None, "next": None}


def test_no_other_saga_and_no_other_tenant_leads_to_it(http: Http, says: Says) -> None:
    begin(http.engine, ADA, PARTY)
    begin(http.engine, GRACE, PARTY, {"ref": kept(http, LONG).ref, "size": 9_000})
    value = kept(http, LONG)
    append(http.engine, SagaEnded(status="completed", output=value))
    assert http.get(path(value)).status == 200
    http.get(path(value, GRACE)).problem(404, "not-found")
    says(http.get(path(value), tenant="globex").problem(404, "not-found")["detail"])


def test_a_value_that_no_answer_has_room_for_comes_in_parts_that_make_up_its_json(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    text = 'ü"\\' * 600_000
    value = kept(http, text)
    append(http.engine, SagaEnded(status="completed", output=value))
    parts: list[str] = []
    after: int | None = 0
    while after is not None:
        shown = http.get(path(value), query={"after": str(after)}).body
        assert (shown["value"], shown["size"]) == (None, value.size)
        parts.append(shown["part"])
        after = shown["next"]
    assert len(parts) == 4
    assert json.loads("".join(parts)) == text


@pytest.mark.parametrize("wrong", ["soup", "A" * 64, "a" * 63])
def test_a_digest_has_64_hexadecimal_digits(http: Http, wrong: str) -> None:
    begin(http.engine, ADA, PARTY)
    assert http.get(f"/sagas/{ADA.id}/values/{wrong}").status == 404


def test_a_part_beyond_the_end_is_refused_with_the_size(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    value = kept(http, LONG)
    append(http.engine, SagaEnded(status="completed", output=value))
    assert (
        f"after is below {value.size}"
        in http.get(path(value), query={"after": str(value.size)}).problem(400, "bad-request")["detail"]
    )
