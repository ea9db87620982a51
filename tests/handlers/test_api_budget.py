"""A user's money of a day over HTTP: what is shown of it, and who starts nothing more."""

from __future__ import annotations

from baton.core.decide.spending import day_of
from baton.ports import Account, Reservation, ReservationChange
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ECHO
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial", "UserDayBudgetUsd": "2.50"}


def spend(http: Http, micro: int, user: str = "ada") -> None:
    now = http.engine.clock.now()
    account, opened = Account("acme", user, day_of(now)), Reservation(1, 0, now + 1_000)
    budgets = http.engine.ledger_cache.budgets
    budgets.move(account, ReservationChange("x", None, opened), now)
    budgets.move(account, ReservationChange("x", opened, None, micro), now)


def test_a_caller_sees_what_the_own_day_has_room_for(http: Http) -> None:
    now = http.engine.clock.now()
    account = Account("acme", "ada", day_of(now))
    spend(http, 1_200_000)
    spend(http, 2_000_000, user="grace")
    opened = ReservationChange("r", None, Reservation(1, 300_000, now + 9_000), limit=2_500_000)
    http.engine.ledger_cache.budgets.move(account, opened, now)
    shown = http.get("/budget", user="ada").body
    assert shown.pop("day")
    assert shown == {
        "user": "ada",
        "spent_usd": 1.2,
        "reserved_usd": 0.3,
        "limit_usd": 2.5,
        "left_usd": 1.0,
        "blocked_until": None,
        "blocked": False,
        "saga_limit_usd": 1.0,
        "tenant": None,
    }
    assert http.get("/budget", user="eve").body["left_usd"] == 2.5


def test_a_user_who_has_spent_it_all_starts_nothing_until_the_day_turns(
    http: Http, deployment: Deployment, says: Says
) -> None:
    http.register(ECHO)
    spend(http, 2_500_000)
    before = len(deployment.items())
    refused = http.post("/sagas", {"workflow": "echo"}, user="ada")
    problem = refused.problem(429, "budget-user-day")
    says.within(problem["detail"])
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    assert len(deployment.items()) == before
    shown = http.get("/budget", user="ada").body
    assert (shown["left_usd"], shown["blocked_until"][10:]) == (0, "T00:00:00.000Z")
    assert http.post("/sagas", {"workflow": "echo"}, user="grace").status == 201
