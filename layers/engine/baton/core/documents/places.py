"""From a place in a document to the model of the object there, and so to the keys that it can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from baton.core.documents.familiar import WORDS, plainly
from baton.core.documents.models import WorkflowModel
from baton.core.documents.named import GraphModel
from baton.core.documents.nodes.node_model import NodeModel
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.parts.approval import ApprovalModel, RiskRuleModel
from baton.core.documents.parts.audience import AudienceModel
from baton.core.documents.parts.bounds import (
    BytesModel,
    CostModel,
    CountModel,
    GuardrailsModel,
    LimitsModel,
    TimeModel,
)
from baton.core.documents.parts.callback import CallbackModel
from baton.core.documents.parts.compensate import CompensateModel
from baton.core.documents.parts.control import (
    BranchModel,
    JoinModel,
    LoopModel,
    PauseModel,
    PollModel,
    RuleModel,
)
from baton.core.documents.parts.escalation import EscalationModel
from baton.core.documents.parts.failing import (
    ActionModel,
    AtMostModel,
    AttemptModel,
    CatchModel,
    MatchModel,
    PolicyModel,
    ReactionModel,
    RetryModel,
    WindowModel,
)
from baton.core.documents.parts.handler import HandlerModel
from baton.core.documents.parts.many import MapModel
from baton.core.documents.parts.outside import EventsModel, SignalRuleModel, StartRuleModel
from baton.core.documents.parts.replan import ReplanModel
from baton.core.documents.parts.schedule import ScheduleModel
from baton.core.expressions import escape

# Looking for the nearest of many names takes long, and authors repair a document from its beginning.
MAX_HINTS = 1_000
# Keys are short: with less in common, the nearest would be one by chance.
_NEAR = 0.6

# What has fields of its own beside the key of the kind.
_PARTS: Mapping[str, type[BaseModel]] = {"map": MapModel, "join": JoinModel, "loop": LoopModel}
# What stands under a key of a node or of the document, or in a list there.
INSIDE: Mapping[str, type[BaseModel]] = {
    **{kind.key: kind.model for kind in NODE_TYPES if kind.model},
    **{key: model for kind in NODE_TYPES for key, model in kind.parts.items()},
    "branch": BranchModel,
    "rules": RuleModel,
    "loop": LoopModel,
    "pause": PauseModel,
    "poll": PollModel,
    "every": PauseModel,
    "join": JoinModel,
    "map": MapModel,
    "callback": CallbackModel,
    "guardrails": GuardrailsModel,
    "limits": LimitsModel,
    "fan_out": CountModel,
    "hops": CountModel,
    "wall_time": TimeModel,
    "bytes": BytesModel,
    "cost_usd": CostModel,
    "tokens": CountModel,
    "retry": RetryModel,
    "at_most": AtMostModel,
    "failover": PolicyModel,
    "when": MatchModel,
    "attempt": AttemptModel,
    "time": WindowModel,
    "then": ActionModel,
    "catch": CatchModel,
    "requires_approval": ApprovalModel,
    "replan": ReplanModel,
    "compensate": CompensateModel,
    "escalate": EscalationModel,
    "hand_on": AudienceModel,
    "risk": RiskRuleModel,
    "failure_handler": HandlerModel,
    "schedule": ScheduleModel,
    "events": EventsModel,
    "start": StartRuleModel,
    "signal": SignalRuleModel,
}
# What stands under any key of these.
BELOW: Mapping[str, type[BaseModel]] = {"on_failure": ReactionModel, "graphs": GraphModel}


def there(location: Sequence[Any], document: Any) -> list[Any]:
    """As much of a location as the document has: `join: 0` has no `wait_for` in it. A missing key is had, too.

    A place in a list is none where one thing stands for a list of it.
    """
    value, taken = document, []
    for step in location:
        if isinstance(value, dict) and isinstance(step, int):
            continue
        if not isinstance(value, (dict, list)) or isinstance(step, str) == isinstance(value, list):
            break
        taken.append(step)
        value = value.get(step) if isinstance(value, dict) else value[step]
    return taken


def unshared(value: Any) -> Any:
    """A copy of a JSON value in which every place has an object of its own.

    A change at one place is then none at another, nor of what the caller has.
    """
    if isinstance(value, dict):
        return {key: unshared(item) for key, item in value.items()}
    return [unshared(item) for item in value] if isinstance(value, list) else value


def pointer_of(location: Sequence[Any]) -> str:
    """A JSON Pointer (RFC 6901)."""
    return "".join(f"/{escape(step)}" for step in location)


def model_around(location: Sequence[Any]) -> type[BaseModel]:
    """The model of the object that has the last step of the location in it."""
    in_node = location[0] == "nodes"
    around = [step for step in location[2 if in_node else 0 : -1] if isinstance(step, str)]
    if not around:
        return NodeModel if in_node else WorkflowModel
    return BELOW.get(around[-2] if around[1:] else "") or INSIDE.get(around[-1], BaseModel)


def fields_around(location: Sequence[Any]) -> Mapping[str, FieldInfo]:
    """The fields that there can be beside the last step of the location, by the keys that a document writes."""
    return _fields(model_around(location))


def _fields(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def meant(location: Sequence[Any]) -> str:
    """The known key that the last step of the location nearly is, or stands for elsewhere, or an empty string."""
    return _meant(str(location[-1]), model_around(location))


def belongs(location: Sequence[Any], node: Mapping[str, Any]) -> tuple[str, ...]:
    """Where in its node the last step of the location belongs, if that is known and not where it stands; empty otherwise.

    A field of the node can stand below the key of its kind, one of the kind or of `map` beside that, and a limit at either place.
    """
    below = tuple(location[2:-1])
    word = plainly(str(location[-1]))
    kind = next((one for one in NODE_TYPES if one.key in node and (one.key != word or below)), None)
    if kind is None or below not in ((), (kind.key,)):
        return ()
    inside, beside = _key(word, kind.model) if kind.model else "", _key(word, NodeModel)
    if below and (inside or beside in kind.fields):
        return () if inside else (beside,)
    if not below and inside and (inside == word or not beside):
        held = node[kind.key]
        return () if isinstance(held, dict) and inside in held else (kind.key, inside)
    for key, model in () if below else _PARTS.items():
        if key in node and (field := _key(word, model)) and (field == word or not beside):
            return (key, field)
    limit = _key(word, LimitsModel)
    return ("limits", limit) if limit and not beside else ()


def _key(word: str, model: type[BaseModel]) -> str:
    """The key of an object that is called so, here or elsewhere; an empty string if there is none."""
    return word if word in _fields(model) else WORDS[model].key(word) if model in WORDS else ""


def advice(location: Sequence[Any]) -> str:
    """The message about a key of another tool that has no counterpart here."""
    words = WORDS.get(model_around(location))
    return words.advice(plainly(str(location[-1]))) if words is not None else ""


@lru_cache(maxsize=MAX_HINTS)  # asked more than once for each, and looking takes long
def _meant(name: str, model: type[BaseModel]) -> str:
    known, word = tuple(_fields(model)), plainly(name)
    if word in known:
        return word
    if (words := WORDS.get(model)) is not None:
        if key := words.key(word):
            return key
        if words.advice(word):
            return ""
    return next(iter(get_close_matches(name, known, n=1, cutoff=_NEAR)), "")
