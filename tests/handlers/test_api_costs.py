"""`GET /costs` over HTTP: for operators, a day at a time."""

from __future__ import annotations

from tests.handlers.http import Http


def test_an_operator_sees_what_models_have_cost_on_a_day(http: Http) -> None:
    shown = http.get("/costs", query={"by": "model", "day": "2026-01-01"}, roles="[operate]").body
    assert shown == {"day": "2026-01-01", "by": "model", "costs": [], "looked_at": 0, "next": None}


def test_others_do_not(http: Http) -> None:
    assert http.get("/costs", roles="[read run]").status == 403


def test_a_wrong_day_or_key_is_refused_with_what_would_be_right(http: Http) -> None:
    for day in ("yesterday", "2026-13-01", "2026-01-01T00:00:00Z"):
        problem = http.get("/costs", query={"day": day}, roles="[operate]").problem(400, "bad-request")
        assert "a day, such as 2026-11-21" in str(problem)
    problem = http.get("/costs", query={"by": "month"}, roles="[operate]").problem(400, "bad-request")
    assert "workflow" in str(problem)
