"""Money and error budgets, as calls of `Api`."""

from __future__ import annotations

from typing import Any

from baton.client.calls import Calls

_SUMMED = ("sagas", "input", "output", "usd")


class CostCalls(Calls):
    """What an `Api` can ask about what sagas cost, and what may be spent or fail."""

    async def cost(self, saga: str) -> dict[str, Any]:
        """`GET /sagas/{id}/cost`."""
        return await self._get_of(saga, "cost", has="usd")

    async def costs(self, by: str, day: str | None, of: str = "") -> dict[str, Any]:
        """`GET /costs`, its pages added up."""
        query = {"by": by, **({"day": day} if day else {}), **({"of": of} if of else {})}
        page = await self._get("/costs", query, has="costs")
        sums, left_out = {row["key"]: row for row in page["costs"]}, list(page.get("left_out") or ())
        while page["next"] is not None:
            page = await self._get(
                "/costs", {**query, "day": page["day"], "cursor": page["next"]}, has="costs"
            )
            left_out += page.get("left_out") or ()
            for row in page["costs"]:
                before = sums.setdefault(row["key"], {**row, **dict.fromkeys(_SUMMED, 0)})
                before.update({name: before[name] + row[name] for name in _SUMMED})
        costs = sorted(sums.values(), key=lambda row: (-row["usd"], row["key"]))
        return {"day": page["day"], "by": by, "costs": costs, **({"left_out": left_out} if of else {})}

    async def budget(self) -> dict[str, Any]:
        """`GET /budget`."""
        return await self._get("/budget", has="spent_usd")

    async def error_budgets(self, day: str | None = None) -> list[dict[str, Any]]:
        """`GET /error-budgets`, its pages."""
        pages: list[dict[str, Any]] = []
        query = {"day": day} if day else {}
        while not pages or pages[-1]["next"] is not None:
            pages.append(await self._get("/error-budgets", query, has="workflows"))
            query = {"day": pages[0]["day"], "cursor": pages[-1]["next"]}
        return pages
