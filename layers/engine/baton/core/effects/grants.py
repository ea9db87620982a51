"""Which standard tools a deployment has switched on, and for which of its tenants.

What the tools do is in tools/standard.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Final

import msgspec

from baton.core.effects.toolspec import ToolSpec

PREFIX: Final = "std."
STANDARD: Final = (
    "std.delete_resource", "std.find_payment", "std.get", "std.get_object", "std.http", "std.http_pipeline", "std.named_pipeline", "std.notify",
    "std.notify_cancelled", "std.openapi", "std.pay", "std.pipeline", "std.put_object", "std.refund", "std.restore",
    "std.restore_object", "std.search_tools", "std.upsert",
)  # fmt: skip
ALL: Final = "std.*"
SEARCH: Final = "std.search_tools"
NAMED: Final = "std.named_pipeline"
"""Not one of `std.*`: where it is granted, what agents run is kept."""
# What looks whether another tool has acted, what takes back what that has done, and what does nothing outside that another cannot
# do, is there with it.
_WITH: Final = {
    "std.find_payment": "std.pay", "std.refund": "std.pay", "std.http_pipeline": "std.http", "std.delete_resource": "std.http",
    "std.restore": "std.upsert", "std.restore_object": "std.put_object", "std.notify_cancelled": "std.notify",
}  # fmt: skip

_TENANTS = r"[A-Za-z0-9_.:@+=|-]{1,128}(,[A-Za-z0-9_.:@+=|-]{1,128})*"
_WORD = rf"std\.(\*|{'|'.join(name.removeprefix(PREFIX) for name in STANDARD)})(={_TENANTS})?"
PATTERN: Final = f"^({_WORD}( {_WORD})*)?$"
"""Of the setting: `std.http std.pay=acme,globex`."""


class Grants(msgspec.Struct, frozen=True):
    """`tools` has the tenants of each name, None for all of them."""

    tools: Mapping[str, frozenset[str] | None]

    @classmethod
    def of(cls, text: str) -> Grants:
        """From the words of the setting: a name, or `std.*`, and behind `=` the tenants that may use it."""
        tools: dict[str, frozenset[str] | None] = {}
        for word in text.split():
            name, limited, tenants = word.partition("=")
            known = tools.get(name, frozenset())
            tools[name] = None if known is None or not limited else known | set(tenants.split(","))
        return cls(tools)

    def allows(self, name: str, tenant: str | None = None) -> bool:
        """Whether this tenant, or without one any tenant, may use the standard tool of this name."""
        names = (
            {name, _WITH.get(name, name), ALL if name != NAMED else NAMED} if name in STANDARD else set[str]()
        )
        for granted in names & self.tools.keys():
            tenants = self.tools[granted]
            if tenants is None or tenant is None or tenant in tenants:
                return True
        return False


NOTHING: Final = Grants({})
EVERYTHING: Final = Grants({ALL: None, NAMED: None})


class OfTenants(Mapping[str, ToolSpec]):
    """Tools that not every tenant may use."""

    @abstractmethod
    def for_tenant(self, tenant: str) -> Mapping[str, ToolSpec]:
        """Those that this tenant may."""


def tools_for(tenant: str, tools: Mapping[str, ToolSpec]) -> Mapping[str, ToolSpec]:
    """The tools that a tenant's documents may name."""
    return tools.for_tenant(tenant) if isinstance(tools, OfTenants) else tools


def off(name: str) -> str:
    """What to say of a tool that is not there, if it is one of these."""
    return (
        "it is a standard tool that `StandardTools` of the deployment does not name for this tenant"
        if name in STANDARD
        else ""
    )
