"""Contract of `Effects`: of any number of claims one is right, and only who has seen an effect replaces it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from baton.adapters.aws import Aws
from baton.adapters.dynamo.effects import DynamoEffects
from baton.errors import CorruptLog
from baton.ports.log import ItemTooLarge
from baton.ports.records import COMPLETED, FAILED, FREED, IN_PROGRESS, Effect
from tests.contract.stores import AwsStores, Stores
from tests.contract.test_concurrency import MANY, at_once
from tests.kit.meter import Meter
from tests.kit.table import create_table

NOW = 1_790_000_000_000
KEY = "0123456789abcdef0123456789abcdef"


def a_claim(owner: str = "me-1", **changed: Any) -> Effect:
    fields: dict[str, Any] = {
        "tenant": "acme",
        "key": KEY,
        "status": IN_PROGRESS,
        "owner": owner,
        "tool": "table.book",
        "saga": "dinner-1",
        "slot": "book#0",
        "until": NOW + 30_000,
        "first": NOW,
        "updated": NOW,
    }
    return Effect(**fields | changed)


def test_the_first_claim_is_put_and_the_next_one_is_told_of_it(stores: Stores) -> None:
    assert stores.effects.claim(a_claim()) is None
    assert stores.effects.claim(a_claim("you-1", saga="dinner-2")) == a_claim()
    assert stores.effects.read("acme", KEY) == a_claim()


def test_keys_and_tenants_have_claims_of_their_own(stores: Stores) -> None:
    others = [a_claim(), a_claim(tenant="globex"), a_claim(key="f" * 32), a_claim(tenant="a#EFFECT#b")]
    assert [stores.effects.claim(claim) for claim in others] == [None] * 4
    assert [stores.effects.read(claim.tenant, claim.key) for claim in others] == others
    assert stores.effects.read("stranger", KEY) is None


def test_an_effect_reads_back_with_all_that_it_holds(stores: Stores) -> None:
    done = a_claim(
        status=COMPLETED,
        data=b'{"value":{"v":"' + "ä".encode() * 3_000 + b'"}}',
        generation=2,
        shared_until=NOW + 3_500,
        expires=NOW + 5_000,
    )
    failed = a_claim(
        status=FAILED, code="rate_limited", message="no more", kind="transient", ref="cas://sha256/00"
    )
    for effect in (done, failed):
        assert stores.effects.change(a_claim(), effect) is None, "what has gone is put"
        assert stores.effects.read("acme", KEY) == effect
        assert stores.effects.change(effect, replace(effect, status=FREED)) is None
        assert stores.effects.claim(a_claim()) is None


def test_only_a_writer_that_has_seen_an_effect_replaces_it(stores: Stores) -> None:
    stores.effects.claim(a_claim())
    done, taken = a_claim(status=COMPLETED, data=b"{}"), a_claim("you-1")
    assert stores.effects.change(a_claim("them-1"), taken) == a_claim(), "another owner"
    assert stores.effects.change(done, taken) == a_claim(), "another status"
    assert stores.effects.change(a_claim(), done) is None
    assert stores.effects.change(a_claim(), taken) == done
    assert stores.effects.change(done, taken) is None
    assert stores.effects.read("acme", KEY) == taken


def test_a_change_that_is_repeated_is_told_of_itself(stores: Stores) -> None:
    stores.effects.claim(a_claim())
    done = a_claim(status=COMPLETED, data=b"{}")
    assert stores.effects.change(a_claim(), done) is None
    assert stores.effects.change(a_claim(), done) == done


def test_an_effect_that_was_freed_counts_as_not_there(stores: Stores) -> None:
    stores.effects.claim(a_claim("you-1"))
    stores.effects.change(a_claim("you-1"), a_claim("you-1", status=FREED))
    assert stores.effects.claim(a_claim("them-1")) is None


def test_one_whose_window_or_time_to_live_is_over_is_there_until_it_is_deleted(stores: Stores) -> None:
    """Who may claim it anew is for the runtime to judge: its own place never may."""
    there = a_claim(status=COMPLETED, data=b"{}", shared_until=1, expires=2_000)
    stores.effects.claim(there)
    assert stores.effects.claim(a_claim("you-1")) == there


def test_of_many_claims_at_the_same_time_one_is_put_and_the_others_are_told_of_it(
    concurrent_stores: Stores,
) -> None:
    claims = [a_claim(f"owner-{n}") for n in range(MANY)]
    told = at_once([partial(concurrent_stores.effects.claim, claim) for claim in claims])
    assert told.count(None) == 1
    winner = claims[told.index(None)]
    assert {there.owner for there in told if there is not None} == {winner.owner}


def test_of_many_that_take_over_one_claim_one_does(concurrent_stores: Stores) -> None:
    concurrent_stores.effects.claim(a_claim())
    takers = [a_claim(f"owner-{n}") for n in range(MANY)]
    told = at_once([partial(concurrent_stores.effects.change, a_claim(), taker) for taker in takers])
    assert told.count(None) == 1
    assert concurrent_stores.effects.read("acme", KEY) == takers[told.index(None)]


def test_a_claim_is_one_item_without_a_time_to_live_and_a_result_has_one(moto: AwsStores) -> None:
    moto.effects.claim(a_claim())
    (item,) = moto.scan()
    assert item == {
        "pk": {"S": f"T#acme#EFFECT#{KEY}"},
        "sk": {"S": "EFFECT"},
        "st": {"S": "in_progress"},
        "owner": {"S": "me-1"},
        "tool": {"S": "table.book"},
        "saga": {"S": "dinner-1"},
        "slot": {"S": "book#0"},
        "until": {"N": str(NOW + 30_000)},
        "created": {"N": str(NOW)},
        "updated": {"N": str(NOW)},
    }
    moto.effects.change(a_claim(), a_claim(status=COMPLETED, data=b'{"value":{}}', expires=NOW + 999))
    (item,) = moto.scan()
    assert (item["ttl"], item["d"]) == ({"N": str(NOW // 1_000 + 1)}, {"B": b'{"value":{}}'})
    assert "shared" not in item, "it is given as long as it is there"


def test_an_effect_costs_two_units_and_one_that_is_recorded_one(moto_aws: Aws) -> None:
    aws = Aws()  # clients of its own: what listens to them goes with the test
    create_table(aws.dynamodb, "sagas")
    effects, meter = DynamoEffects(aws.dynamodb, "sagas"), Meter(aws)
    effects.claim(a_claim())
    effects.change(
        a_claim(), a_claim(status=COMPLETED, data=b'{"value":{"v":"' + b"r" * 500 + b'"}}', expires=NOW)
    )
    assert meter.units == [1, 1]
    assert effects.claim(a_claim()) is not None
    assert meter.units == [1, 1, 1]


def test_what_no_item_can_hold_is_refused_with_its_size(moto: AwsStores) -> None:
    noise = bytes(n * n * 7919 % 251 ^ n >> 8 & 255 for n in range(500_000))
    with pytest.raises(ItemTooLarge):
        moto.effects.claim(a_claim(data=noise))


def test_an_effect_that_no_version_of_ours_has_written_is_told(moto: AwsStores) -> None:
    effects = moto.effects
    assert isinstance(effects, DynamoEffects)
    effects._client.put_item(
        TableName=effects._table, Item={"pk": {"S": f"T#acme#EFFECT#{KEY}"}, "sk": {"S": "EFFECT"}}
    )
    with pytest.raises(CorruptLog, match="cannot be read"):
        effects.read("acme", KEY)
