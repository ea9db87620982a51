"""Contract of `Notices` and `Incidents`: told once in a day, never lost; incidents are kept, found and resolved."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from baton.adapters.aws import Aws
from baton.adapters.channels.sns import SnsNotices
from baton.adapters.memory.people import MemoryNotices
from baton.core.limits import Limits
from baton.core.log.events import Notice
from baton.errors import ChannelRefused, StoreUnavailable, Throttled
from baton.ports.people import CLAIM_MS, WINDOW_MS, Notices, Telling, incident_of
from baton.runtime.invocation.context import inline
from baton.runtime.people.notices import send
from tests.contract.stores import AwsStores, Stores

NOW = 1_790_000_000_000
ASKED = Notice(
    key="dinner-1/0.pay.3",
    to="user",
    code="rate_limited",
    message="Pay later?",
    node="pay",
    at=NOW,
    ask="0.pay.3",
)
BROKEN = Notice(
    key="dinner-1/0.book.2.incident",
    to="on_call",
    code="service_down",
    message="The service is down.",
    severity="high",
    node="book",
    at=NOW,
    incident=True,
)


def tell(
    stores: Stores, notice: Notice, now: int = NOW, saga: str = "dinner-1", tenant: str = "acme"
) -> None:
    by(stores.notices, stores, telling(notice, now, saga, tenant))


def by(channel: Notices, stores: Stores, told: Telling, *, is_first: bool = True) -> None:
    asyncio.run(send(inline, stores.notice_record, channel, told, set(), is_first=is_first))


def telling(notice: Notice, now: int = NOW, saga: str = "dinner-1", tenant: str = "acme") -> Telling:
    return Telling(tenant=tenant, saga=saga, user="ada", notice=notice, now=now)


# ---- notices


def test_a_notice_says_what_has_happened_and_where_and_can_be_filtered(stores: Stores) -> None:
    tell(stores, BROKEN)
    (told,) = stores.told()
    assert told == {
        "tenant": "acme",
        "saga": "dinner-1",
        "user": "ada",
        "node": "book",
        "to": "on_call",
        "code": "service_down",
        "severity": "high",
        "message": "The service is down.",
    }


def test_a_key_is_told_once_in_a_day_and_again_the_day_after(stores: Stores) -> None:
    for later in (0, 1, WINDOW_MS - 1):
        tell(stores, ASKED, NOW + later)
    assert len(stores.told()) == 1
    tell(stores, ASKED, NOW + 2 * WINDOW_MS)
    assert len(stores.told()) == 1, "the same one stays due while another channel fails"
    another = replace(ASKED, at=NOW + WINDOW_MS)
    tell(stores, another, NOW + WINDOW_MS)
    tell(stores, another, NOW + WINDOW_MS + 1)
    assert len(stores.told()) == 2


def test_other_keys_and_other_tenants_are_told_too_and_the_saga_does_not_matter(stores: Stores) -> None:
    tell(stores, ASKED)
    tell(stores, replace(ASKED, key="dinner-1/0.pay.4"))
    tell(stores, ASKED, tenant="globex")
    tell(stores, ASKED, saga="dinner-2")
    assert len(stores.told()) == 3


def test_of_callers_at_the_same_time_one_tells(concurrent_stores: Stores) -> None:
    def one(number: int) -> None:
        with contextlib.suppress(Throttled):  # the others come back after a pause
            tell(concurrent_stores, ASKED, saga=f"dinner-{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(12)))
    tell(concurrent_stores, ASKED)
    assert len(concurrent_stores.told()) == 1


def test_a_claim_is_one_sagas_until_it_runs_out_and_keeps_the_first_notice(stores: Stores) -> None:
    kept, later = stores.notice_record, replace(BROKEN, at=NOW + 5)
    assert kept.claim("acme", "dinner-1", BROKEN, NOW) == BROKEN
    assert kept.claim("acme", "dinner-1", BROKEN, NOW + 1) == BROKEN, "its successor"
    with pytest.raises(Throttled):
        kept.claim("acme", "dinner-2", later, NOW + CLAIM_MS)
    assert kept.claim("acme", "dinner-2", later, NOW + 1 + CLAIM_MS) == BROKEN
    kept.sent("acme", BROKEN.key, NOW + 2 + CLAIM_MS)
    assert kept.claim("acme", "dinner-1", later, NOW + 3 + CLAIM_MS) is None


# ---- incidents


def test_an_incident_is_kept_once_and_open(stores: Stores) -> None:
    tell(stores, BROKEN)
    tell(stores, BROKEN, NOW + 5)
    tell(stores, ASKED)
    expected = incident_of("acme", "dinner-1", BROKEN)
    assert stores.notice_record.listed("acme", limit=10) == ([expected], "")
    assert (expected.opened, expected.resolved, expected.message) == (NOW, 0, "The service is down.")
    assert stores.notice_record.listed("globex", limit=10) == ([], "")


def test_the_newest_incident_is_the_first_and_pages_go_on_behind_each_other(stores: Stores) -> None:
    for number in range(5):
        tell(stores, replace(BROKEN, key=f"k{number}", at=NOW + number), saga=f"dinner-{number}")
    seen, after = [], ""
    for _ in range(10):
        page, after = stores.notice_record.listed("acme", limit=2, after=after)
        assert len(page) <= 2
        seen += [incident.saga for incident in page]
        if not after:
            break
    assert seen == [f"dinner-{number}" for number in (4, 3, 2, 1, 0)]


def test_the_last_who_acknowledges_an_incident_has_it_until_it_is_resolved(stores: Stores) -> None:
    stores.notice_record.open("acme", "dinner-1", BROKEN)
    (one,) = stores.notice_record.of_saga("acme", "dinner-1")

    def found(status: str) -> int:
        return len(stores.notice_record.listed("acme", status=status, limit=10)[0])

    assert (found("open"), found("unacknowledged")) == (1, 1)
    first = stores.notice_record.acknowledge("acme", one, "grace", "I call.", NOW + 1)
    assert first is not None
    assert (first.acked, first.holder, first.note, first.resolved) == (NOW + 1, "grace", "I call.", 0)
    assert (found("open"), found("unacknowledged"), found("resolved"), found("")) == (1, 0, 0, 1)
    assert stores.notice_record.acknowledge("acme", one, "grace", "I call.", NOW + 2) == first
    assert stores.notice_record.acknowledge("acme", one, "ada", "", NOW + 3) == first, (
        "not seen what is there"
    )
    last = stores.notice_record.acknowledge("acme", one, "ada", "", NOW + 3, first.acked)
    assert (
        last == stores.notice_record.find("acme", one) == replace(first, acked=NOW + 3, holder="ada", note="")
    )
    late = stores.notice_record.acknowledge("acme", one, "grace", "I call.", NOW + 1, 0)
    assert late == stores.notice_record.acknowledge("acme", one, "grace", "", NOW + 4, first.acked) == last
    over = stores.notice_record.resolve("acme", one, "bob", NOW + 4)
    assert over is not None
    assert (over.holder, over.by) == ("ada", "bob")
    assert stores.notice_record.acknowledge("acme", one, "eve", "late", NOW + 5, NOW + 3) == over
    assert (found("open"), found("unacknowledged"), found("resolved")) == (0, 0, 1)
    assert stores.notice_record.find("acme", "i" + "0" * 24) is None
    assert stores.notice_record.find("globex", one) is None
    assert stores.notice_record.acknowledge("acme", "i" + "0" * 24, "eve", "", NOW) is None


def test_an_incident_is_resolved_once_by_the_first_caller(stores: Stores) -> None:
    tell(stores, BROKEN)
    (found,) = stores.notice_record.of_saga("acme", "dinner-1")
    first = stores.notice_record.resolve("acme", found, "grace", NOW + 60_000)
    assert first is not None
    assert (first.resolved, first.by) == (NOW + 60_000, "grace")
    assert stores.notice_record.resolve("acme", found, "ada", NOW + 70_000) == first
    assert stores.notice_record.listed("acme", limit=10) == ([first], "")


@pytest.mark.parametrize("id", ["i00000000000000", "no such"])
def test_there_is_no_incident_to_resolve_that_was_never_opened(stores: Stores, id: str) -> None:
    assert stores.notice_record.resolve("acme", id, "grace", NOW) is None
    assert stores.notice_record.listed("acme", limit=10) == ([], "")


def test_a_list_can_be_of_open_ones_or_of_resolved_ones(stores: Stores) -> None:
    for number in range(4):
        tell(stores, replace(BROKEN, key=f"k{number}", at=NOW + number), saga=f"dinner-{number}")
    for number in (1, 3):
        for found in stores.notice_record.of_saga("acme", f"dinner-{number}"):
            stores.notice_record.resolve("acme", found, "grace", NOW)
    shown = {
        status: [
            incident.saga for incident in stores.notice_record.listed("acme", status=status, limit=10)[0]
        ]
        for status in ("open", "resolved")
    }
    assert shown == {"open": ["dinner-2", "dinner-0"], "resolved": ["dinner-3", "dinner-1"]}
    (newest,), after = stores.notice_record.listed("acme", status="open", limit=1)
    ((oldest,), _) = stores.notice_record.listed("acme", status="open", limit=1, after=after)
    assert (newest.saga, oldest.saga) == ("dinner-2", "dinner-0")


def test_the_incidents_of_a_saga_are_found_also_those_of_one_node(stores: Stores) -> None:
    tell(stores, BROKEN)
    tell(stores, replace(BROKEN, key="later", at=NOW + 9, node="pay"))
    tell(stores, replace(BROKEN, key="other"), saga="dinner-2")
    both = stores.notice_record.of_saga("acme", "dinner-1")
    assert list(both) == sorted(both)
    assert len(both) == 2
    assert list(stores.notice_record.of_saga("acme", "dinner-1", "pay")) == list(both)[1:]
    assert list(stores.notice_record.of_saga("acme", "dinner-3")) == []


# ---- what can go wrong on the way


class Topic:
    """A client of SNS that fails when it is told to."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.then: Callable[[], None] | None = None

    def publish(self, **request: Any) -> Any:
        if self.then is not None:
            self.then()
        return self._client.publish(**request)


class Died(BaseException):
    """The invocation is gone."""


@pytest.fixture
def topic(moto: AwsStores, moto_aws: Aws) -> Topic:
    return Topic(moto_aws.sns)


@pytest.fixture
def sender(moto: AwsStores, topic: Topic) -> SnsNotices:
    return SnsNotices(topic, moto.topic)  # type: ignore[arg-type]  # a topic that can fail


def die() -> None:
    raise Died


def test_an_invocation_that_died_over_a_notice_has_its_successor_send_it(
    moto: AwsStores, topic: Topic, sender: SnsNotices
) -> None:
    topic.then = die
    with pytest.raises(Died):
        by(sender, moto, telling(BROKEN, NOW, "dinner-1"))
    topic.then = None
    by(sender, moto, telling(BROKEN, NOW + 1, "dinner-1"))
    by(sender, moto, telling(BROKEN, NOW + 2, "dinner-1"))
    assert len(moto.told()) == 1
    assert len(moto.notice_record.listed("acme", limit=10)[0]) == 1


def test_another_saga_waits_for_a_claim_to_run_out_and_keeps_the_first_incident(
    moto: AwsStores, topic: Topic, sender: SnsNotices
) -> None:
    topic.then = die
    with pytest.raises(Died):
        by(sender, moto, telling(BROKEN, NOW, "dinner-1"))
    topic.then = None
    later = replace(BROKEN, at=NOW + 5)
    with pytest.raises(Throttled):
        by(sender, moto, telling(later, NOW + CLAIM_MS - 1, "dinner-2"))
    by(sender, moto, telling(later, NOW + CLAIM_MS, "dinner-2"))
    assert len(moto.told()) == 1
    ((incident,), _) = moto.notice_record.listed("acme", limit=10)
    assert incident.opened == NOW


def test_a_claim_belongs_to_the_process_that_takes_it_over_first(moto: AwsStores, moto_aws: Aws) -> None:
    kept = moto.notice_record
    assert kept.claim("acme", "dinner-1", ASKED, NOW) == ASKED

    def overtake(params: Any, **_: object) -> None:
        if "ConditionExpression" in params and "#until = :seen" in params["ConditionExpression"]:
            events.unregister("provide-client-params.dynamodb.UpdateItem", overtake)
            assert kept.claim("acme", "dinner-2", ASKED, NOW + CLAIM_MS) == ASKED

    events = moto_aws.dynamodb.meta.events
    events.register("provide-client-params.dynamodb.UpdateItem", overtake)
    with pytest.raises(Throttled):
        kept.claim("acme", "dinner-3", ASKED, NOW + CLAIM_MS)


def test_a_topic_that_refuses_is_an_outage_and_the_notice_is_sent_later(
    moto: AwsStores, moto_aws: Aws
) -> None:
    gone = SnsNotices(moto_aws.sns, moto.topic + "-gone")
    with pytest.raises(StoreUnavailable):
        by(gone, moto, telling(BROKEN, NOW, "dinner-1"))
    tell(moto, BROKEN, NOW + 1)
    assert len(moto.told()) == 1


def test_what_no_message_can_hold_is_replaced_and_what_is_too_long_is_cut(moto: AwsStores) -> None:
    odd = replace(ASKED, code="c" * 200, message="\x00" + "x" * 300_000, node="")
    tell(moto, odd)
    (told,) = moto.told()
    assert told["message"].startswith("\ufffdx")
    assert "node" not in told


def test_a_channel_that_has_refused_for_ever_says_so_for_a_day_and_other_channels_do_not_care(
    stores: Stores,
) -> None:
    def never(_: Telling) -> None:
        tried.append(_)
        raise ChannelRefused("no such person")

    tried: list[Telling] = []
    mail = MemoryNotices("mail")
    for later, is_over in ((0, False), (1, False), (WINDOW_MS, True)):
        mail.fails = None if is_over else never
        with contextlib.nullcontext() if is_over else pytest.raises(ChannelRefused, match="no such person"):
            by(mail, stores, telling(replace(BROKEN, at=NOW + later), NOW + later), is_first=False)
    assert (len(mail.told), len(tried)) == (1, 1)
    assert stores.notice_record.listed("acme", limit=10) == ([], ""), "the first channel opens them"
    tell(stores, BROKEN)
    assert len(stores.told()) == 1


def test_a_claim_in_progress_stays_and_one_that_was_told_expires_when_no_channel_is_tried_any_more(
    moto: AwsStores,
) -> None:
    kept = moto.notice_record
    kept.claim("acme", "dinner-1", ASKED, NOW)
    (claimed,) = moto.scan()
    assert claimed["pk"]["S"].startswith("T#acme#NOTICE#")
    assert "ttl" not in claimed
    kept.sent("acme", ASKED.key, NOW)
    (told,) = moto.scan()
    assert told["ttl"] == {"N": str((NOW + WINDOW_MS + Limits().give_up_ms) // 1_000)}
    assert json.dumps(told).count("acme") == 1
