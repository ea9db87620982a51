"""Syntax of a question to a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from pydantic import Field, StrictBool, StringConstraints

from baton.core.documents.nodes.base import MAP, Compiler, KnownInterfaces, NodeDocument, Words
from baton.core.documents.parts.fields import Duration, Given, Model, Value, one_of
from baton.core.documents.parts.node import Schema
from baton.core.documents.parts.people import (
    FAMILIAR,
    MEANWHILE,
    SO_MANY,
    Audience,
    EscalationModel,
    Text,
    escalation_problems,
)
from baton.core.expressions import expressions_in
from baton.core.failures.policy import SEVERITIES
from baton.core.graph.graph import Asks
from baton.core.log.questions import (
    APPROVAL,
    APPROVE,
    DECISION,
    INPUT,
    POLICY,
    REJECT,
    SUBMIT,
    TAKEOVER,
    TYPES,
)
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel

DAY_MS = 86_400_000
MAX_SCHEMA = 16_384  # bytes: each question has it with it
MAX_OPTIONS = 50
HARMLESS = ("low", "medium")
"""The risks at which an approval may be given without a person."""


class OptionModel(Model):
    """One of the answers that a question offers."""

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = Field(
        description="Identifier that an answer names, and the `answer` of the output."
    )
    label: Annotated[Text | None, Given] = Field(
        default=None, description="Text that a person reads. Without it, the id."
    )
    description: Annotated[Text | None, Given] = Field(
        default=None, description="Consequence of choosing this option."
    )
    default: StrictBool = Field(default=False, description="Taken when the question expires. At most one is.")
    destructive: StrictBool = Field(default=False, description="Marks an option that cannot be undone.")


class TakeoverModel(Model):
    """Work that a person takes over by hand."""

    url: Text = Field(description="Address of the page to work on. It begins with https://.")
    picture: Annotated[Text | None, Given] = Field(
        default=None,
        description="Address of a picture of the page as it is now. It begins with https:// or cas://sha256/.",
    )
    instructions: Annotated[Text | None, Given] = Field(
        default=None, description="Instructions for the person."
    )


class HumanModel(Model):
    """Question to a person, with its possible answers, its audience and its expiry."""

    type: Annotated[
        Literal["decision", "input", "approval", "takeover", "error"] | None,
        one_of(*TYPES),
        Given,
    ] = Field(
        default=None,
        description=(
            "Type of the question. Without it, `options`, `schema` or `takeover` decides; else it is "
            "an approval."
        ),
    )
    title: Text = Field(description="The question in a line.")
    message: Annotated[Text | None, Given] = Field(
        default=None, description="Information that the person needs to answer."
    )
    details: Value = Field(
        default=None,
        description="Information as data, for a page to show.",
    )
    options: Annotated[list[OptionModel] | None, Given] = Field(
        default=None,
        description="The answers of a decision. Of an approval: other words for `approve` and `reject`.",
        json_schema_extra={"minItems": 1, "maxItems": MAX_OPTIONS},
    )
    schema_: Annotated[Schema | None, Given] = Field(
        default=None,
        alias="schema",
        description="JSON Schema of the data that an input asks for.",
    )
    takeover: Annotated[TakeoverModel | None, Given] = Field(
        default=None,
        description="Work that a person takes over by hand.",
    )
    to: Audience = Field(
        default=None,
        description="Audience that may answer besides operators: the user who started the saga (`starter`), "
        "another user, the members of a group, or all callers with a role.",
    )
    expires: Duration = Field(
        default=DAY_MS,
        description="Time until the question expires; without it, 24 hours. Then a decision takes its default "
        "option, an approval is rejected, and any other question fails with `question_expired`.",
        json_schema_extra={"default": "24h"},
    )
    risk: Annotated[
        Literal["low", "medium", "high", "critical"] | None,
        one_of(*SEVERITIES),
        Given,
    ] = Field(default=None, description="Risk that depends on the answer; it is shown to people.")
    escalate: Annotated[list[EscalationModel] | None, Given] = Field(
        default=None,
        description=MEANWHILE,
        json_schema_extra=SO_MANY,
    )

    @property
    def asks(self) -> str:
        """The type of the question."""
        given = {DECISION: self.options, INPUT: self.schema_, TAKEOVER: self.takeover}
        return self.type or next((name for name, value in given.items() if value is not None), APPROVAL)


# What goes with which type of question: the others cannot have it.
_GOES: Mapping[str, tuple[str, ...]] = {
    "options": (DECISION, APPROVAL),
    "schema": (INPUT,),
    "takeover": (TAKEOVER,),
}
_NEEDS = {DECISION: "options", INPUT: "schema", TAKEOVER: "takeover"}


class Human(NodeDocument):
    kind = "human"
    key = "human"
    title = "Question"
    description = (
        "Asks a person and waits for the answer. No invocation runs meanwhile. The output has "
        "the answer, the person and the time. A rejected approval fails with `rejected`."
    )
    icon = "?"
    outline = ("[/", "\\]")
    own = (MAP,)
    refusal = (
        "a question takes neither `with` nor `timeout`; write what it says under `human`, and `human.expires`"
    )
    example: ClassVar[Mapping[str, Any]] = {
        "human": {
            "title": "Book ${input.restaurant}?",
            "details": {"party": "${input.party}"},
            "to": {"group": "hosts"},
            "expires": "4h",
        },
        "description": "A rejected node fails with `rejected`, from which `catch` can go on.",
    }
    is_idle = True
    output: ClassVar[Mapping[str, Any]] = {
        "description": "Answer, with its author and its time.",
        "type": "object",
        "required": ["answer", "data", "comment", "by", "at", "source"],
        "properties": {
            "answer": {
                "type": "string",
                "description": "`approve`, `submit`, `done`, or the id of an option.",
            },
            "data": {"description": "Submitted data; else null."},
            "comment": {"type": ["string", "null"]},
            "by": {"type": ["string", "null"], "description": "The user; null for the default."},
            "at": {"type": "string", "format": "date-time"},
            "source": {"type": "string", "enum": ["person", "default", POLICY]},
        },
        "additionalProperties": False,
    }
    familiar = "ask approval approve question prompt interrupt intervention user_input human_in_the_loop"
    field = (Annotated[HumanModel | None, Given], Field(default=None))
    model = HumanModel
    inside = Words(
        keys={
            "type": "kind",
            "title": "question prompt text subject",
            "message": "description body instructions",
            "details": "data context payload",
            "options": "choices actions buttons",
            "schema": "input_schema form fields output_schema",
            "to": "assignee assigned_to audience user group role who",
            "expires": "timeout expires_in deadline until ttl",
            "risk": "risk_level severity criticality impact",
            "escalate": FAMILIAR,
        },
        said={
            "default default_answer default_option": (
                "give an option of a decision `default: true`, or let `escalate` decide"
            )
        },
    )

    def nearest_valid_form(self, value: Any) -> str:
        return f"write `human: {{title: {value}}}`" if isinstance(value, str) and value else ""

    def gives(self, known: KnownInterfaces, node: NodeModel, declared: Any) -> Any:
        if declared is not None:
            return declared
        human: HumanModel = self.of(node)
        answers = _answers(human)
        if human.asks != DECISION:
            answers = [one for one in answers if one != REJECT]
        data = human.schema_ if human.asks == INPUT else {"type": "null"}
        inside = {**self.output["properties"], "answer": {"enum": answers}, "data": data}
        return {**self.output, "properties": inside}

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        for name, value in self._says(self.of(node)).items():
            yield f"/human/{name}", value

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        human: HumanModel = self.of(node)
        place = f"/nodes/{name}/human"
        given = {"options": human.options, "schema": human.schema_, "takeover": human.takeover}
        if (needed := _NEEDS.get(human.asks)) and given[needed] is None:
            yield Problem(place, f"a question of type `{human.asks}` needs `{needed}`")
        for key, types in _GOES.items():
            if given[key] is not None and human.asks not in types:
                known = " or ".join(f"`{type_}`" for type_ in types)
                yield Problem(f"{place}/{key}", f"goes with the type {known}, not with `{human.asks}`")
        yield from _options(f"{place}/options", human)
        if human.escalate is not None:
            yield from escalation_problems(
                f"{place}/escalate",
                human.escalate,
                expires=human.expires,
                expiry="see `expires`, 24h by default",
                answers=[one for one in _answers(human) if one != SUBMIT],
                refused=_only_by_a_person(human),
            )
        if human.schema_ is not None:
            yield from compiler.schema(f"{place}/schema", human.schema_)
            if len(msgspec.json.encode(human.schema_)) > MAX_SCHEMA:
                yield Problem(f"{place}/schema", f"the schema of a question has at most {MAX_SCHEMA:,} bytes")
        if human.takeover is not None:
            for key, starts in (("url", ("https://",)), ("picture", ("https://", "cas://sha256/"))):
                value = getattr(human.takeover, key) or ""
                if value and not any(True for _ in expressions_in(value)) and not value.startswith(starts):
                    yield Problem(f"{place}/takeover/{key}", f"must begin with {' or '.join(starts)}")

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        human: HumanModel = self.of(node)
        is_said = "expires" in human.model_fields_set
        expires = human.expires if is_said else compiler.limits.question_timeout_ms
        asks = Asks(type=human.asks, says=self._says(human), schema=human.schema_, expires_ms=expires)
        return {"kind": self.kind, "asks": asks}

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        return f"{node.get('type', '')}: {node.get('title', '')}, at most {span(node.get('expires_ms'))}"

    def _says(self, human: HumanModel) -> dict[str, Any]:
        """Return the fields that may have expressions, and those that go with them, as in the document."""
        names = {"title", "message", "details", "options", "takeover", "to", "risk"}
        said: dict[str, Any] = human.model_dump(include=names, exclude_unset=True)
        said |= {"escalate": [step.said() for step in human.escalate]} if human.escalate else {}
        return {name: value for name, value in said.items() if value is not None}


def _answers(human: HumanModel) -> list[str]:
    if human.asks == DECISION:
        return [one.id for one in human.options or ()]
    return list(TYPES[human.asks][1])


def _only_by_a_person(human: HumanModel) -> dict[str, tuple[str, str]]:
    """Return the answers that no escalation may give, each with the reason,
    and with what to write instead.
    """
    if human.asks != APPROVAL or human.risk in HARMLESS:
        return {}
    said = "it has none" if human.risk is None else f"it is {human.risk}"
    why = f"`{APPROVE}` without a person needs a `risk` of {' or '.join(HARMLESS)}; {said}"
    return {APPROVE: (why, f"write `decide: {REJECT}`, or `hand_on`")}


def _options(place: str, human: HumanModel) -> Iterator[Problem]:
    options = human.options
    if options is None:
        return
    if not 1 <= len(options) <= MAX_OPTIONS:
        yield Problem(place, f"must be 1 to {MAX_OPTIONS} options")
    seen: set[str] = set()
    defaults = [index for index, one in enumerate(options) if one.default]
    for index, one in enumerate(options):
        if one.id in seen:
            yield Problem(f"{place}/{index}/id", f"`{one.id}` is there twice")
        seen.add(one.id)
    if human.asks == APPROVAL:
        if seen != {APPROVE, REJECT}:
            yield Problem(place, f"the options of an approval are `{APPROVE}` and `{REJECT}`")
        for index in defaults:
            text = "an approval has no default: without an answer it is rejected"
            yield Problem(f"{place}/{index}/default", text, "make it a `decision` if that is not meant")
    elif len(defaults) > 1:
        yield Problem(f"{place}/{defaults[1]}/default", "at most one option is the default")
