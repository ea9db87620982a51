"""Contract of `Breakers`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from baton.adapters.dynamo.operators import DynamoBreakers
from baton.core.failures.breakers import (
    HALF_OPEN,
    OPEN,
    Breaker,
    BreakerTerms,
    FailureReport,
    Move,
    Probe,
    forced_open,
    reset,
    with_probe,
    with_reports,
)
from tests.contract.stores import AwsStores, Stores

NOW = 1_790_000_000_000
TERMS = BreakerTerms()
FULL = Breaker(
    version=1,
    state=OPEN,
    since=NOW,
    until=NOW + 30_000,
    rounds=2,
    failed=(FailureReport(NOW, "timeout", 3, 4, "i-1"),),
    probes=(Probe("i-2/saga/pay", NOW + 5),),
    passed=1,
    moves=(Move(NOW, OPEN, "3 of 4 calls failed", "i-1"),),
)


def test_what_is_written_is_read(stores: Stores) -> None:
    assert stores.breakers.read_breaker("acme", "payments") is None
    assert stores.breakers.write_breaker("acme", "payments", FULL, NOW) is None
    assert stores.breakers.read_breaker("acme", "payments") == FULL


def test_a_write_that_has_not_seen_the_newest_is_refused_with_what_is_there(stores: Stores) -> None:
    stores.breakers.write_breaker("acme", "payments", FULL, NOW)
    second = replace(FULL, version=2, rounds=3)
    assert stores.breakers.write_breaker("acme", "payments", second, NOW) is None
    assert stores.breakers.write_breaker("acme", "payments", replace(second, passed=0), NOW) == second
    assert stores.breakers.write_breaker("acme", "payments", Breaker(version=1), NOW) == second
    assert stores.breakers.read_breaker("acme", "payments") == second


def test_a_write_that_has_seen_what_has_expired_since_is_refused_with_a_new_one(stores: Stores) -> None:
    assert stores.breakers.write_breaker("acme", "payments", replace(FULL, version=7), NOW) == Breaker()
    assert stores.breakers.read_breaker("acme", "payments") is None


def test_tenants_and_targets_are_kept_apart_and_listed_in_order(stores: Stores) -> None:
    for tenant, target in (("acme", "b"), ("acme", "a.example-8080"), ("globex", "a"), ("acme", "c")):
        stores.breakers.write_breaker(tenant, target, replace(FULL, rounds=len(target)), NOW)
    listed = stores.breakers.all("acme")
    assert [(target, breaker.rounds) for target, breaker in listed] == [
        ("a.example-8080", 14),
        ("b", 1),
        ("c", 1),
    ]
    assert [target for target, _ in stores.breakers.all("acme", after="a.example-8080", limit=1)] == ["b"]
    assert stores.breakers.all("initech") == []


def _report(stores: Stores, who: int) -> Breaker:
    """One failure, by an invocation that has seen nothing yet; returns the state that it has agreed on."""
    there = Breaker()
    while True:
        after = with_reports(there, (FailureReport(NOW, "timeout", 1, 1, f"i-{who}"),), TERMS, NOW, 0.0)
        if after is there:
            return there
        refused = stores.breakers.write_breaker("acme", "payments", after, NOW)
        if refused is None:
            return after
        there = refused


def test_fifty_invocations_agree_that_it_is_open_and_let_one_probe_through(concurrent_stores: Stores) -> None:
    with ThreadPoolExecutor(50) as pool:
        list(pool.map(lambda who: _report(concurrent_stores, who), range(50)))
    there = concurrent_stores.breakers.read_breaker("acme", "payments")
    assert there is not None
    assert (there.state, there.rounds, there.version) == (OPEN, 1, TERMS.failures)
    later = there.until + 1

    def probe(who: int) -> bool:
        seen = there
        while True:
            after = with_probe(seen, f"i-{who}", later + 5_000, TERMS, later)
            if after is seen:
                return False
            refused = concurrent_stores.breakers.write_breaker("acme", "payments", after, later)
            if refused is None:
                return True
            seen = refused

    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(probe, range(50))) == 1
    now = concurrent_stores.breakers.read_breaker("acme", "payments")
    assert now is not None
    assert (now.state, len(now.probes)) == (HALF_OPEN, 1)


def test_a_record_expires_thirty_days_after_its_last_write(moto: AwsStores) -> None:
    moto.breakers.write_breaker("acme", "payments", FULL, NOW)
    (item,) = moto.scan()
    assert item["ttl"] == {"N": str(NOW // 1_000 + 30 * 86_400)}
    assert (item["pk"], item["sk"], item["ver"]) == ({"S": "T#acme#BREAKERS"}, {"S": "payments"}, {"N": "1"})


def test_one_that_is_open_until_it_is_reset_does_not_expire(moto: AwsStores) -> None:
    """Calls would go through again, and no operator has said so."""
    opened = forced_open(Breaker(), "ada", 0, NOW)
    moto.breakers.write_breaker("acme", "payments", opened, NOW)
    (item,) = moto.scan()
    assert "ttl" not in item
    moto.breakers.write_breaker("acme", "payments", reset(opened, "ada", NOW), NOW)
    (item,) = moto.scan()
    assert "ttl" in item


def test_one_record_that_cannot_be_read_keeps_no_other_from_being_listed(moto: AwsStores) -> None:
    breakers = moto.breakers
    assert isinstance(breakers, DynamoBreakers)
    for target in ("payments", "tables"):
        breakers.write_breaker("acme", target, FULL, NOW)
    item = next(one for one in moto.scan() if one["sk"]["S"] == "payments")
    breakers._client.put_item(TableName=breakers._table, Item={**item, "d": {"B": b"\x00nonsense"}})
    (_, unread), (_, read) = breakers.all("acme")
    assert (unread.version, "cannot be read" in unread.moves[0].why) == (FULL.version, True)
    assert read == FULL
