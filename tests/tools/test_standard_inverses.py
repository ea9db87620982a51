"""What takes back what a standard tool has done, each against real counterparts: once, whole, and never what others have done since."""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.memory.outside import MemoryEntities, MemoryMailer, MemoryObjects
from baton.core.documents.compile import compile_document
from baton.core.effects.inverses import arguments_of
from baton.core.effects.keys import key_of
from baton.core.failures.codes import leaves_doubt
from baton.errors import Throttled
from baton.tools.standard import Services, standard_tools
from tests.kit.payments import DOWN, LOST, NO, SLOW, Payments, payment_service
from tests.kit.sentences import Says
from tests.tools.outside import HTTP, CrashingClient, Outside, context, failure, perform, services


@pytest.fixture
def kept() -> Services:
    return services(entities=MemoryEntities(), objects=MemoryObjects())


@pytest.mark.parametrize(
    ("tool", "inverse", "from_output", "from_input"),
    [
        ("std.upsert", "std.restore", {"type", "id", "version", "before"}, set()),
        ("std.put_object", "std.restore_object", {"name", "sha256", "written", "latest", "before"}, set()),
        ("std.pay", "std.refund", {"reference"}, {"service"}),
        ("std.notify", "std.notify_cancelled", {"to", "message"}, {"subject"}),
    ],
)
def test_each_names_its_inverse_which_gets_what_it_needs_by_the_rule_of_names(
    tool: str, inverse: str, from_output: set[str], from_input: set[str]
) -> None:
    specs = standard_tools().specs()
    assert specs[tool].undo == inverse
    found = arguments_of(specs[inverse], specs[tool])
    assert {name for name, path in found.items() if path.startswith("${step.output.")} == from_output
    assert {name for name, path in found.items() if path.startswith("${step.input.")} == from_input


def test_a_document_says_how_a_resource_that_a_request_has_created_is_deleted() -> None:
    text = """
name: a
nodes:
  create:
    tool: std.http
    with: {method: POST, url: "https://tables.example/holds"}
    compensate: {tool: std.delete_resource, with: {url: "${step.output.headers.location}", base: "${step.input.url}"}}
"""
    (node,) = compile_document(text, standard_tools().specs()).nodes
    assert node.undo["std.http"].step.tool == "std.delete_resource"


# ---- entities ------------------------------------------------------------------------------------------------


def upsert(kept: Services, key: str, data: Any, **more: Any) -> Any:
    return perform("std.upsert", kept, context(key), type="order", id="o-1", data=data, **more)


def restored(kept: Services, done: Any, key: str = "undo") -> Any:
    return perform("std.restore", kept, context(key), **asked(done))


def asked(done: Any) -> dict[str, Any]:
    """What the rule of names gives to the inverse."""
    return {name: done[name] for name in ("type", "id", "version", "before")}


def there(kept: Services) -> Any:
    found = perform("std.get", kept, type="order", id="o-1")
    return found["version"], found["data"]


def test_an_upsert_that_is_undone_restores_what_it_has_replaced(kept: Services) -> None:
    upsert(kept, "a", {"state": "open"})
    done = upsert(kept, "b", {"state": "paid"})
    assert done["before"] == {"version": 1, "data": {"state": "open"}}
    first = restored(kept, done)
    assert first == {"type": "order", "id": "o-1", "version": 3, "there": True}
    assert restored(kept, done) == first, "the same step again"
    assert there(kept) == (3, {"state": "open"})


def test_an_upsert_that_is_undone_deletes_what_it_has_created(kept: Services) -> None:
    done = upsert(kept, "a", {"state": "open"})
    assert restored(kept, done)["there"] is False
    assert there(kept) == (0, None)
    assert upsert(kept, "a", {"state": "open"})["changed"] is False
    assert there(kept) == (0, None), "an attempt of the upsert that comes late brings nothing back"
    assert upsert(kept, "b", 1, expected_version=0)["version"] == 3


def test_what_others_have_written_since_is_left_as_it_is(kept: Services, says: Says) -> None:
    done = upsert(kept, "a", 1)
    upsert(kept, "b", 2)
    error = failure("std.restore", kept, context("undo"), **asked(done))
    assert error.code == "conflict"
    says(error.message)
    assert there(kept) == (2, 2)


def test_null_is_a_value_that_is_restored(kept: Services) -> None:
    upsert(kept, "a", None)
    assert restored(kept, upsert(kept, "b", 1))["there"] is True
    assert there(kept) == (3, None)


def test_without_what_was_there_nothing_is_restored(kept: Services, says: Says) -> None:
    upsert(kept, "a", 1)
    done = upsert(kept, "b", 2, keep_before=False)
    assert done["before"] is None
    error = failure("std.restore", kept, context("undo"), **asked(done))
    assert error.code == "conflict"
    says(error.message)
    assert there(kept) == (2, 2)


# ---- objects -------------------------------------------------------------------------------------------------


def put(kept: Services, key: str, text: str) -> Any:
    return perform("std.put_object", kept, context(key), name="march", text=text)


def taken_back(done: Any) -> dict[str, Any]:
    return {name: done[name] for name in ("name", "sha256", "written", "latest", "before")}


def undone(kept: Services, done: Any, key: str = "undo") -> Any:
    return perform("std.restore_object", kept, context(key), **taken_back(done))


def newest(kept: Services) -> str:
    return str(perform("std.get_object", kept, name="march")["text"])


def test_a_put_that_is_undone_points_the_name_back_and_deletes_its_content(kept: Services) -> None:
    soup, salad = put(kept, "a", "soup"), put(kept, "b", "salad")
    assert salad["before"] == soup["sha256"]
    first = undone(kept, salad)
    assert first == {"name": "march", "sha256": soup["sha256"], "deleted": True}
    assert undone(kept, salad) == first
    assert newest(kept) == "soup"
    gone = failure("std.get_object", kept, name="march", sha256=salad["sha256"])
    assert gone.code == "file_not_found"


def test_a_put_that_is_undone_leaves_no_name_where_there_was_none(kept: Services) -> None:
    done = put(kept, "a", "soup")
    assert undone(kept, done) == {"name": "march", "sha256": "", "deleted": True}
    assert failure("std.get_object", kept, name="march").code == "file_not_found"
    assert put(kept, "b", "soup")["written"] is True


def test_a_repeated_put_knows_that_it_has_written_the_content(kept: Services) -> None:
    first, again = put(kept, "a", "soup"), put(kept, "a", "soup")
    assert again == first
    assert undone(kept, again)["deleted"] is True


def test_content_of_a_put_that_could_not_point_its_name_may_stand(kept: Services) -> None:
    class Entities(MemoryEntities):
        def put(self, *given: Any, **more: Any) -> Any:
            raise Throttled("too many")

    broken = services(entities=Entities(), objects=kept.objects)
    found = failure("std.put_object", broken, context("a"), name="march", text="soup")
    assert leaves_doubt(found.code, found.kind, found.happened)


def test_a_name_that_was_put_again_is_left_as_it_is(kept: Services) -> None:
    done = put(kept, "a", "soup")
    put(kept, "b", "salad")
    assert failure("std.restore_object", kept, context("undo"), **taken_back(done)).code == "conflict"
    assert newest(kept) == "salad"


def test_content_that_was_there_before_stays(kept: Services) -> None:
    put(kept, "a", "soup")
    put(kept, "b", "salad")
    again = put(kept, "c", "soup")
    assert again["written"] is False
    assert undone(kept, again)["deleted"] is False
    assert newest(kept) == "salad"
    assert perform("std.get_object", kept, name="march", sha256=again["sha256"])["text"] == "soup"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_content_that_another_step_puts_at_that_moment_is_not_lost(kept: Services, moment: str) -> None:
    """It finds the content there, writes nothing, and points the name to it."""

    class Objects(MemoryObjects):
        def delete(self, tenant: str, name: str, sha256: str) -> None:
            if moment == "before":
                put(racing, "other", "soup")
            super().delete(tenant, name, sha256)

        def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
            if moment == "after" and not raced:
                raced.append(name)
                put(racing, "other", "soup")
            return super().get(tenant, name, sha256)

    raced: list[str] = []
    racing = services(entities=MemoryEntities(), objects=Objects())
    done = put(racing, "a", "soup")
    assert undone(racing, done)["deleted"] is False
    assert newest(racing) == "soup"


# ---- mail ----------------------------------------------------------------------------------------------------


def test_a_mail_is_taken_back_by_a_mail_to_the_same_person(says: Says) -> None:
    mailer = MemoryMailer()
    of = services(mailer=mailer, mail_from="desk@lantern.example")
    done = perform("std.notify", of, to="ada@home.example", subject="Tonight", text="At 8.")
    sent = perform("std.notify_cancelled", of, **done, subject="Tonight", reason="The cook is ill.")
    assert sent == {"message": "letter-2", "to": "ada@home.example"}
    letter = mailer.sent[-1]
    assert (letter.to, letter.subject) == ("ada@home.example", "Cancelled: Tonight")
    says(letter.text)
    assert letter.headers["X-Baton-Signature"].startswith("v1=")


def test_a_long_subject_is_cut() -> None:
    mailer = MemoryMailer()
    of = services(mailer=mailer, mail_from="desk@lantern.example")
    perform("std.notify_cancelled", of, to="a@b.example", subject="x" * 200, message="m-1")
    assert len(mailer.sent[0].subject) == 200


def test_of_one_mail_there_is_one_cancellation_whichever_saga_asks() -> None:
    spec = standard_tools()["std.notify_cancelled"].spec

    def key(saga: str, **changed: Any) -> str:
        given = {"to": "a@b.example", "subject": "Tonight", "message": "m-1", "reason": ""} | changed
        return key_of(
            spec.key,
            tenant="acme",
            user="ada",
            saga=saga,
            node="n",
            tool=spec.name,
            parameters=given,
            occurrence=(),
            at=0,
        )

    assert spec.effect == "once"
    assert key("s1") == key("s2", reason="ill")
    assert key("s1") != key("s1", message="m-2")


# ---- resources of an API ---------------------------------------------------------------------------------------


def test_a_resource_is_deleted_by_its_address_with_the_key_of_the_step(server: Outside) -> None:
    url = server.page("/holds/1", 204)
    assert perform("std.delete_resource", HTTP_OF, context("undo"), url=url) == {"status": 204, "found": True}
    method, path, headers, _ = server.seen[-1]
    assert (method, path, headers["idempotency-key"]) == ("DELETE", "/holds/1", "undo")


def test_an_address_may_be_relative_to_that_of_the_request(server: Outside) -> None:
    server.page("/api/holds/1", 204)
    base = f"{server.url}/api/holds"
    assert perform("std.delete_resource", HTTP_OF, url="holds/1", base=base)["found"] is True
    assert server.seen[-1][1] == "/api/holds/1"


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_gone_is_deleted_already(server: Outside, status: int) -> None:
    url = server.page("/holds/1", status)
    assert perform("std.delete_resource", HTTP_OF, url=url) == {"status": status, "found": False}


@pytest.mark.parametrize(
    ("status", "code"), [(409, "conflict"), (403, "forbidden"), (503, "service_unavailable")]
)
def test_a_service_that_does_not_delete_is_a_failure(server: Outside, status: int, code: str) -> None:
    assert failure("std.delete_resource", HTTP_OF, url=server.page("/holds/1", status)).code == code


def test_what_is_no_address_is_refused() -> None:
    assert (
        failure("std.delete_resource", HTTP_OF, url="//[", base="https://a.example").code == "input_invalid"
    )


HTTP_OF = services()


# ---- payments ------------------------------------------------------------------------------------------------

WANTED: dict[str, Any] = {"amount": 2_500, "currency": "EUR", "to": "lantern"}


@pytest.fixture
def books() -> Any:
    with payment_service() as books:
        yield books


def pay(books: Payments, key: str = "k1") -> Any:
    return perform("std.pay", HTTP_OF, context(key), service=books.url, **WANTED)


def refund(books: Payments, reference: str = "k1", key: str = "undo") -> Any:
    return perform("std.refund", HTTP_OF, context(key), reference=reference, service=books.url)


def refusal(books: Payments, reference: str = "k1", **more: Any) -> Any:
    return failure("std.refund", HTTP_OF, context("undo", **more), reference=reference, service=books.url)


def paid_back_once(books: Payments) -> bool:
    return (len(books.paid), len(books.refunded), books.accounts["default"]) == (1, 1, 100_000)


def test_a_payment_is_refunded_whole_and_once_whichever_step_asks(books: Payments) -> None:
    done = pay(books)
    first = refund(books, done["reference"])
    assert first == {
        "refund": "b-1", "status": "refunded", "payment": "p-1", "amount": 2_500, "currency": "EUR", "reference": "k1/refund",
    }  # fmt: skip
    assert refund(books, key="undo") == refund(books, key="another step") == first
    assert paid_back_once(books)
    assert [phase for phase, _ in books.requests].count("refund") == 1, (
        "a refund that is known is not asked for again"
    )


def test_a_refund_is_not_refunded(books: Payments, says: Says) -> None:
    pay(books)
    error = refusal(books, refund(books)["reference"])
    assert (error.code, error.happened) == ("business_rule", False)
    says(error.message)
    assert paid_back_once(books)


def test_what_was_refunded_is_not_paid_again_by_an_attempt_that_comes_late(books: Payments) -> None:
    pay(books)
    refund(books)
    error = failure("std.pay", HTTP_OF, context("k1"), service=books.url, **WANTED)
    assert (error.code, error.happened) == ("business_rule", False)
    assert paid_back_once(books)
    assert pay(books, "k2")["payment"] == "p-2", "another payment is another"


def test_where_nothing_was_paid_nothing_is_refunded(books: Payments, says: Says) -> None:
    assert refusal(books).code == "business_rule"
    books.refuse = 422
    failure("std.pay", HTTP_OF, context("k1"), service=books.url, **WANTED)
    says(refusal(books).message)
    assert books.refunded == []


def test_a_payment_that_was_not_confirmed_yet_is_refunded_too(books: Payments) -> None:
    books.faults["confirm"] = [NO]
    failure("std.pay", HTTP_OF, context("k1"), service=books.url, **WANTED)
    assert refund(books)["payment"] == "p-1"
    assert paid_back_once(books)


@pytest.mark.parametrize("fault", [LOST, DOWN, SLOW])
@pytest.mark.parametrize("phase", ["find", "refund"])
def test_an_answer_that_does_not_come_is_mended_by_the_next_attempt(
    books: Payments, phase: str, fault: str
) -> None:
    pay(books)
    books.faults[phase] = [fault]
    assert refusal(books, seconds=0.4).code in ("connection_failed", "service_unavailable", "timeout")
    assert refund(books)["refund"] == "b-1"
    assert paid_back_once(books)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(2))
def test_after_a_crash_the_same_refund_is_finished(books: Payments, at: int, after: bool) -> None:
    pay(books)
    client = CrashingClient(HTTP, at, after=after)
    failure("std.refund", services(http=client), context("undo"), reference="k1", service=books.url)
    assert client.died
    assert refund(books)["refund"] == "b-1"
    assert paid_back_once(books)


def test_a_refund_is_signed_for_its_tenant_and_names_the_payment(books: Payments) -> None:
    pay(books)
    refund(books)
    assert ("refund", "k1-refund-1") in books.requests


def test_two_writes_of_one_thing_are_both_undone(kept: Services) -> None:
    for number, done in reversed([(n, upsert(kept, f"w{n}", n)) for n in range(3)]):
        assert restored(kept, done, f"u{number}")["there"] is (number > 0)
        assert restored(kept, done, f"u{number}")["there"] is (number > 0), "the same step again"
    assert perform("std.get", kept, type="order", id="o-1")["data"] is None


def test_a_write_of_others_in_between_keeps_an_earlier_one_from_being_undone(kept: Services) -> None:
    first, second = upsert(kept, "a", 1), upsert(kept, "b", 2)
    restored(kept, second, "u2")
    upsert(kept, "other", 3)
    assert failure("std.restore", kept, context("u1"), **asked(first)).code == "conflict"


def test_two_puts_of_one_name_are_both_undone(kept: Services) -> None:
    first, second = put(kept, "a", "one"), put(kept, "b", "two")
    assert undone(kept, second, "u2")["sha256"] == first["sha256"]
    assert undone(kept, first, "u1") == {"name": first["name"], "sha256": "", "deleted": True}
