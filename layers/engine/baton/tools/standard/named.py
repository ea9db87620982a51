"""`std.named_pipeline`: pipelines that a user's agents have run twice, kept under a name by themselves.

Only where the tool is granted: without it `std.pipeline` neither reads nor writes anything. What is kept is
of one user, for that user's agents, and no text that a model has written is told to another one (ADR 53).
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
from pydantic import Field

from baton.core.effects.toolspec import NAMED_PIPELINE
from baton.core.pipelines.pipeline import digest
from baton.core.tracing import is_call
from baton.errors import EngineFault
from baton.ports import StepContext, StepFailure
from baton.ports.outside import Entities
from baton.tools.define import Registry
from baton.tools.standard.kit import Services, standard_tool
from baton.tools.standard.pipelines import Data, Pipelined, Preview, of_steps

LEAST = 2  # runs, before a pipeline has a name
MOST = 50  # names of a user
MOST_BYTES = 16_384  # of the steps of one
_PIPELINE, _NAMES = "~pipeline", "~pipelines"  # types of entities that no document can write
_PLAIN: Final = re.compile("[A-Za-z_][A-Za-z0-9_]{0,39}").fullmatch
logger = logging.getLogger("baton.worker")

Name = Annotated[
    str, Field(pattern="^[0-9a-f]{12}$", description="As `std.pipeline` or `std.search_tools` has told it.")
]
Remember = Callable[[StepContext, Any, Mapping[str, Any]], str]


def declare(registry: Registry, services: Services) -> None:
    @standard_tool(NAMED_PIPELINE, registry=registry, effect="pure")
    async def named_pipeline(name: Name, data: Data, context: StepContext, preview: Preview = 5) -> Pipelined:
        """Run the steps of a pipeline that earlier agents of this user have run
        more than once, by its name, on other data.
        """
        kept = await services.stored(services.entities.get, context.tenant, _PIPELINE, _id(context, name))
        if kept is None or kept.version < LEAST:
            raise StepFailure("input_invalid", f"name: no pipeline `{name}` is kept for this user")
        if strange := {*kept.data["inputs"]} ^ {*data}:
            takes = ", ".join(kept.data["inputs"])
            raise StepFailure("input_invalid", f"data: {', '.join(sorted(strange))}: it takes {takes}")
        return await services.stored(of_steps, kept.data["steps"], data, services.most_bytes, preview)


def rememberer(services: Services, is_granted: Callable[[str], bool]) -> Remember:
    """Return the function that names the steps of a run of `std.pipeline` that has succeeded."""

    def remember(context: StepContext, steps: Any, data: Mapping[str, Any]) -> str:
        is_kept = is_call(context.item) and is_granted(context.tenant) and all(map(_PLAIN, data))
        if not is_kept or len(msgspec.json.encode(steps)) > MOST_BYTES:
            return ""
        try:
            return _counted(services.entities, context, steps, sorted(data))
        except EngineFault as fault:  # a run is no worse for it
            logger.info("a pipeline is not counted", extra={"fault": repr(fault)})
            return ""

    return remember


def kept_names(services: Services, context: StepContext) -> Mapping[str, Mapping[str, Any]]:
    """Return the operations and inputs of the pipelines kept for this user, by name."""
    found = services.entities.get(context.tenant, _NAMES, _id(context))
    return {} if found is None else found.data


def _counted(entities: Entities, context: StepContext, steps: Any, inputs: list[str]) -> str:
    name, tenant = digest(steps, inputs), context.tenant
    place = _id(context, name)
    kept = entities.get(tenant, _PIPELINE, place)
    if kept is None or kept.version < LEAST:
        # A run that is repeated counts once: the call is the key. Its version is how many there were.
        of = f"{context.saga}/{context.node}/{context.iteration}/{context.item}"
        done = entities.put(tenant, _PIPELINE, place, {"steps": steps, "inputs": inputs}, key=_hash(of))
        if done.version < LEAST:
            return ""
    listed = entities.get(tenant, _NAMES, _id(context))
    names = {} if listed is None else listed.data
    if name not in names:
        if len(names) >= MOST:
            return ""
        more = names | {name: {"ops": [str(step["op"]) for step in steps], "inputs": inputs}}
        before = 0 if listed is None else listed.version
        done = entities.put(
            tenant, _NAMES, _id(context), more, key=_hash(f"{name}/{before}"), expected=before
        )
        if done.conflict:  # another run has named another; the next run of this one tries again
            return ""
        logger.info(
            "a pipeline has a name", extra={"pipeline": name, "saga": context.saga, "node": context.node}
        )
    return name


def _id(context: StepContext, name: str = "") -> str:
    """Return the id of a user's record: names of users may be long, and may contain any character."""
    return f"{_hash(context.user)}/{name}" if name else _hash(context.user)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
