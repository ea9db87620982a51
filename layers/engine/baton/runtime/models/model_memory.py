"""What an invocation keeps between the requests of an agent, so that it is made once: messages of turns, and offers of tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from baton.core.effects.toolspec import ToolSpec
from baton.core.models import messages as said
from baton.ports import StepFailure
from baton.ports.models import ToolOffer
from baton.runtime.models.transcript import Told


class Offered(msgspec.Struct, frozen=True):
    """The tools of an agent as a model is told of them.

    `names` are those on the wire, `tools` what is called by them, each with the schema of its parameters as JSON; `json` is all
    that is offered.
    """

    names: dict[str, str]
    offers: tuple[ToolOffer, ...] = ()
    tools: dict[str, tuple[str, bytes]] = {}
    json: msgspec.Raw = msgspec.Raw(b"[]")


class ModelMemory:
    """Of one invocation; `told` is by the saga and the slot of an agent."""

    def __init__(self, specs: Mapping[str, ToolSpec]) -> None:
        self.told: defaultdict[tuple[str, str], Told] = defaultdict(Told)
        self._specs = specs
        self._offered: dict[tuple[str, ...], Offered] = {}

    def offered(self, tools: Sequence[str]) -> Offered:
        """Raises `StepFailure` for a tool that this deployment does not have."""
        key = tuple(tools)
        if (known := self._offered.get(key)) is None:
            names = said.wire_names(key)
            offers = tuple(self._offer(tool, name) for tool, name in names.items())
            called = {
                one.name: (tool, msgspec.json.encode(one.parameters))
                for tool, one in zip(names, offers, strict=True)
            }
            encoded = msgspec.Raw(msgspec.json.encode(offers))
            known = self._offered[key] = Offered(names, offers, called, encoded)
        return known

    def _offer(self, tool: str, name: str) -> ToolOffer:
        spec = self._specs.get(tool)
        if spec is None:
            raise StepFailure(
                "tool_missing", f"this deployment has no tool `{tool}`, which the agent may call"
            )
        return ToolOffer(name=name, description=spec.description, parameters=spec.parameters)


NO_TOOLS = Offered({})
