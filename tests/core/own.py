"""Kinds of node of an application, for tests: a pair of steps, one step, and one that is made wrongly as it is told."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from baton.core.documents.nodes.own import OwnKind, Step


class _Own(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Limit(_Own):
    n: int = 3


class Purchase(_Own):
    """Searches in a city, and pays for what it found."""

    city: str
    limit: Limit = Limit()
    tool: str = "charge"

    def nodes(self, step: Step) -> dict[str, dict[str, Any]]:
        return {
            "search": {"tool": "search", "with": {"city": self.city, "limit": self.limit.n}},
            "pay": {
                "tool": self.tool,
                "after": step("search"),
                "with": {"amount": f"${{ctx.{step('search')}.output.score}}"},
            },
        }


class Pause(_Own):
    """Waits for so many minutes."""

    minutes: int

    def nodes(self, step: Step) -> dict[str, dict[str, Any]]:
        return {"wait": {"wait": {"for": f"{self.minutes}m"}}}


class Odd(_Own):
    """What comes of it cannot be."""

    how: str

    def nodes(self, step: Step) -> dict[str, dict[str, Any]]:
        if self.how == "raises":
            raise ValueError("no")
        first = {"value": 1, "when": "input.go", "branch": {"rules": [{"if": "true", "then": step("c")}]}}
        after = {} if self.how == "lost" else {"after": step("c")}
        return {"a": first, "c": {"value": 3}, "b": {"value": 2, "output_schema": True, **after}}


def _kind(key: str, model: type[BaseModel], **example: Any) -> OwnKind:
    return OwnKind(key, model, key.title(), model.__doc__ or "", "2", "▣", {key: example})


KINDS = {
    "purchase": _kind("purchase", Purchase, city="Rome"),
    "pause": _kind("pause", Pause, minutes=5),
    "odd": _kind("odd", Odd, how="raises"),
}
