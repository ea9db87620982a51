"""`GET /costs` over HTTP: for operators, a day at a time."""

from __future__ import annotations

from typing import Any

import pytest

from baton.errors import CorruptLog, TooLarge
from baton.runtime.requests import costs
from baton.runtime.requests.costs import saga_cost
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ALL, GRACE, SILENT, begin
from tests.kit.sentences import Says


def test_an_operator_sees_what_models_have_cost_on_a_day(http: Http) -> None:
    shown = http.get("/costs", query={"by": "model", "day": "2026-01-01"}, roles="[operate]").body
    assert shown == {"day": "2026-01-01", "by": "model", "costs": [], "looked_at": 0, "next": None}


def test_others_do_not(http: Http) -> None:
    assert http.get("/costs", roles="[read run]").status == 403


def test_a_wrong_day_or_key_is_refused_with_what_would_be_right(http: Http, says: Says) -> None:
    for day in ("yesterday", "2026-13-01", "2026-01-01T00:00:00Z"):
        problem = http.get("/costs", query={"day": day}, roles="[operate]").problem(400, "bad-request")
        says(str(problem))
    problem = http.get("/costs", query={"by": "month"}, roles="[operate]").problem(400, "bad-request")
    assert "workflow" in str(problem)


def test_what_aws_has_cost_is_the_sum_of_what_each_saga_has(http: Http, says: Says) -> None:
    for ref, user in ((ADA, "ada"), (GRACE, "grace"), (ALL, "grace")):
        begin(http.engine, ref, SILENT, user=user)
    each = {one: http.get(f"/sagas/{one.id}/cost").body["usd"]["aws"] for one in (ADA, GRACE, ALL)}
    query = {"of": "aws", "by": "user"}
    shown = http.get("/costs", query=query, roles="[operate]").body
    costs = {row["key"]: (row["sagas"], row["usd"]) for row in shown["costs"]}
    assert costs == {
        "ada": (1, pytest.approx(each[ADA])),
        "grace": (2, pytest.approx(each[GRACE] + each[ALL])),
    }
    assert (shown["looked_at"], shown["next"], shown["left_out"]) == (3, None, [])
    assert http.get("/costs", query={"of": "aws", "day": "2026-01-02"}, roles="[operate]").body["costs"] == []
    problem = http.get("/costs", query={"of": "aws", "by": "model"}, roles="[operate]").problem(
        400, "bad-request"
    )
    says(problem["detail"])


@pytest.mark.parametrize("fault", [TooLarge("its log is too long"), CorruptLog("an entry is missing")])
def test_a_day_of_more_sagas_goes_on_and_one_whose_log_cannot_be_read_is_named(
    http: Http, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setattr(costs, "MOST", 2)
    for ref in (ADA, GRACE, ALL):
        begin(http.engine, ref, SILENT)

    async def too_long(*given: Any) -> Any:
        if given[3].head.ref == GRACE:
            raise fault
        return await saga_cost(*given)

    monkeypatch.setattr(costs, "saga_cost", too_long)
    pages = [http.get("/costs", query={"of": "aws"}, roles="[operate]").body]
    while pages[-1]["next"]:
        query = {"of": "aws", "cursor": pages[-1]["next"]}
        pages.append(http.get("/costs", query=query, roles="[operate]").body)
    assert sum(page["looked_at"] for page in pages) == 3
    assert sum(row["sagas"] for page in pages for row in page["costs"]) == 2
    assert [saga for page in pages for saga in page["left_out"]] == [GRACE.id]
