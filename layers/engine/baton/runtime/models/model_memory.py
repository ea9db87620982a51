"""What an invocation keeps between the requests of an agent, so that it is made once: messages of turns, and offers of tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from baton.core.effects.operations import OPERATIONS, Operations, keeps_list
from baton.core.effects.operations import offered as told_of
from baton.core.effects.toolspec import ToolSpec
from baton.core.models import messages as said
from baton.ports import StepFailure
from baton.ports.models import ToolOffer
from baton.runtime.models.transcript import Told


class Offered(msgspec.Struct, frozen=True):
    """The tools of an agent as a model is told of them.

    `names` are those on the wire, `tools` what is called by them, each with the schema of its parameters as JSON; `json` is all
    that is offered; `operations` are those of APIs that may be called, by the
    tools of `listing`.
    """

    names: dict[str, str]
    offers: tuple[ToolOffer, ...] = ()
    tools: dict[str, tuple[str, bytes]] = {}
    json: msgspec.Raw = msgspec.Raw(b"[]")
    operations: Operations = {}
    listing: frozenset[str] = frozenset()


class ModelMemory:
    """Of one invocation; `told` is by the saga and the slot of an agent."""

    def __init__(self, specs: Mapping[str, ToolSpec]) -> None:
        self.told: defaultdict[tuple[str, str], Told] = defaultdict(Told)
        self._specs = specs
        self._offered: dict[bytes, Offered] = {}

    def offered(self, arguments: Mapping[str, Any]) -> Offered:
        """What a turn offers by its arguments in the graph. Raises `StepFailure` for a tool that this deployment does not have."""
        key = msgspec.json.encode(arguments)
        if (known := self._offered.get(key)) is None:
            operations = arguments.get(OPERATIONS, {})
            names = said.wire_names(arguments["tools"])
            offers = tuple(self._offer(tool, name, operations) for tool, name in names.items())
            called = {
                one.name: (tool, msgspec.json.encode(one.parameters))
                for tool, one in zip(names, offers, strict=True)
            }
            listing = frozenset(tool for tool in names if keeps_list(self._specs[tool]))
            encoded = msgspec.Raw(msgspec.json.encode(offers))
            known = self._offered[key] = Offered(names, offers, called, encoded, operations, listing)
        return known

    def _offer(self, tool: str, name: str, operations: Operations) -> ToolOffer:
        spec = self._specs.get(tool)
        if spec is None:
            raise StepFailure(
                "tool_missing", f"this deployment has no tool `{tool}`, which the agent may call"
            )
        description, parameters = told_of(spec, operations)
        return ToolOffer(name=name, description=description, parameters=dict(parameters))


NO_TOOLS = Offered({})
