"""The bodies of requests about questions: what people answer, and who takes one on."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET
from pydantic import (
    Field,
    JsonValue,
)

from baton.core.log.answers import ACTIONS, APPROVE, DONE, MAX_COMMENT, REJECT, SUBMIT, Answer
from baton.web.bodies.reading import Body, Plainly


class RemindBody(Body):
    """A question of a saga."""

    ask: str = Field(
        min_length=1, max_length=500, description="The question's id, as the saga shows it in `questions`."
    )


class ClaimBody(RemindBody):
    """A question that the caller wants to answer, or gives back."""

    release: bool = Field(
        False,
        description="The question is for all of its audience again; by the user who has it, or an operator.",
    )


class AnswerBody(RemindBody):
    """What a person says to a question of a saga."""

    action: str = Field(
        min_length=1,
        max_length=64,
        description="One of the question's `options`: of a step that failed `retry`, `use` (this output) or `fail`; of "
        "other questions `approve` or `reject`, `submit`, `done`, or the id of one of its choices.",
        examples=[*ACTIONS, APPROVE, REJECT, SUBMIT, DONE],
    )
    arguments: dict[str, JsonValue] = Field(
        {},
        description="With `retry`: these take the place of the step's arguments of the same names. The question's "
        "`arguments` says which an answer may change.",
    )
    output: JsonValue = Field(None, description="With `use`: what takes the place of the step's output.")
    data: JsonValue = Field(None, description="With `submit`: the data that fit the question's `schema`.")
    comment: Annotated[str, Plainly] = Field(
        "", max_length=MAX_COMMENT, description="What the person has to say besides."
    )

    def answer(self) -> Answer:
        given = {name: getattr(self, name) for name in ("output", "data") if name in self.model_fields_set}
        return Answer(
            ask=self.ask, action=self.action, arguments=self.arguments, comment=self.comment, **given
        )


class ConfirmBody(Body):
    """What the reader of a message answers."""

    token: str = Field(
        min_length=1,
        max_length=4_096,
        description="What stands behind the `#` of the link. It is good for a quarter of an hour, and ends with an answer.",
    )
    action: str = Field(min_length=1, max_length=64, description="One of the question's `options`.")
    data: JsonValue = Field(None, description="With `submit`: the data that fit the question's `schema`.")
    comment: Annotated[str, Plainly] = Field(
        "", max_length=MAX_COMMENT, description="What the person has to say besides."
    )

    def answer(self) -> Answer:
        data = self.data if "data" in self.model_fields_set else UNSET
        return Answer(ask="", action=self.action, data=data, comment=self.comment)
