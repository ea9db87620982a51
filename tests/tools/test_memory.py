"""`std.remember`, `std.recall` and `std.forget`: facts of a user across sagas."""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.facts import StoredFacts
from baton.adapters.memory.store import MemoryCheckpoints
from baton.ports import StepFailure
from baton.ports.models import Embedding
from baton.testing.outside import EMBEDDING_MODEL, WordEmbedder
from baton.tools.standard import Services
from baton.tools.standard.kit import EARLIER_MS
from tests.tools.outside import context, failure, perform, services

SEAT, TEA = "Prefers window seats", "Drinks green tea"


@pytest.fixture
def own() -> Services:
    return with_facts()


def with_facts(facts: Any = None, **parts: Any) -> Services:
    given: dict[str, Any] = {"embedder": WordEmbedder(), "embedding_model": EMBEDDING_MODEL}
    return services(facts=facts or StoredFacts(MemoryCheckpoints()), **given | parts)


def recalled(of: Services, query: str = "Which seats?", **where: Any) -> list[str]:
    found = perform("std.recall", of, context(**where), query=query)
    return [one["text"] for one in found["facts"]]


def test_a_later_saga_finds_what_an_earlier_one_has_kept(own: Services) -> None:
    kept = perform("std.remember", own, context("k1", saga="first"), text=SEAT)
    perform("std.remember", own, context("k2", saga="first"), text=TEA)
    found = perform("std.recall", own, context(saga="second"), query="seats by the window", most=1)
    (fact,) = found.pop("facts")
    assert found == {"other_models": 0, "more": False}
    assert (fact["id"], fact["text"], fact["saga"]) == (kept["id"], SEAT, "first")
    assert 0 < fact["score"] < 1
    assert fact["at"].endswith("Z")


def test_a_repeated_call_keeps_a_fact_once(own: Services) -> None:
    first = perform("std.remember", own, context("k1"), text=SEAT)
    again = perform("std.remember", own, context("k1", attempt=2), text=SEAT)
    assert first == again
    assert len(own.facts.listed("acme", "ada", "", 10)[0]) == 1


def test_facts_of_two_tenants_with_one_users_name_do_not_meet(own: Services) -> None:
    mine = perform("std.remember", own, context("k1", tenant="acme"), text=SEAT)
    perform("std.remember", own, context("k2", tenant="globex"), text="Prefers aisle seats")
    assert recalled(own, tenant="acme") == [SEAT]
    assert recalled(own, tenant="globex") == ["Prefers aisle seats"]
    assert recalled(own, user="bob") == []
    assert perform("std.forget", own, context(tenant="globex"), id=mine["id"])["forgotten"] is False
    assert recalled(own, tenant="acme") == [SEAT]


def test_a_forgotten_fact_is_gone_and_its_own_late_attempt_does_not_write_it_again(own: Services) -> None:
    kept = perform("std.remember", own, context("k1"), text=SEAT)
    assert perform("std.forget", own, context("k2"), id=kept["id"])["forgotten"]
    perform("std.remember", own, context("k1", attempt=2), text=SEAT)
    assert recalled(own) == []


def test_a_fact_expires(own: Services) -> None:
    perform("std.remember", own, context("k1"), text=SEAT, expires="1h")
    perform("std.remember", own, context("k2"), text=TEA)
    (fact, _) = own.facts.nearest("acme", "ada", EMBEDDING_MODEL, [1.0] * 256, 5, 2**50).found[0]
    assert fact.text == TEA
    refused = failure("std.remember", own, context("k3"), text=SEAT, expires="soon")
    assert (refused.code, refused.message.startswith("expires: ")) == ("input_invalid", True)


def test_a_changed_model_finds_no_older_facts_and_says_how_many_there_are(own: Services) -> None:
    perform("std.remember", own, context("k1"), text=SEAT)
    changed = with_facts(own.facts, embedding_model="newer")
    perform("std.remember", changed, context("k2"), text=TEA)
    found = perform("std.recall", changed, context(), query="seats")
    assert ([one["text"] for one in found["facts"]], found["other_models"]) == ([TEA], 1)


def test_a_saga_without_a_user_and_a_deployment_without_a_model_are_told_so(own: Services) -> None:
    nameless = failure("std.recall", own, context(user=""), query="seats")
    assert (nameless.code, "no user" in nameless.message) == ("input_invalid", True)
    without = failure("std.remember", with_facts(embedding_model=""), context(), text=SEAT)
    assert (without.code, "`Facts`" in without.message) == ("input_invalid", True)


class Refusing:
    """An embedder that fails, with what a test says."""

    def __init__(self, **said: Any) -> None:
        self._said = said

    async def embed(self, model: str, text: str, until: int) -> Embedding:
        raise StepFailure("rate_limited", "slow down", **self._said)


@pytest.mark.parametrize(("said", "cost"), [({"status": 429}, ["0"]), ({"unsent": True}, ["0"]), ({}, [])])
def test_only_a_refused_request_costs_nothing(said: dict[str, Any], cost: list[str]) -> None:
    at = context()
    failure("std.recall", with_facts(embedder=Refusing(**said)), at, query="seats")
    assert [str(amount) for amount in at.spent] == cost


def test_a_provider_that_hangs_is_left_before_the_attempt_ends() -> None:
    asked = list[int]()

    class Hanging:
        async def embed(self, model: str, text: str, until: int) -> Embedding:
            asked.append(until)
            raise StepFailure("timeout", "no answer")

    at = context()
    failure("std.recall", with_facts(embedder=Hanging()), at, query="seats")
    assert asked == [at.deadline_ms - EARLIER_MS]
