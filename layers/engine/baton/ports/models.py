"""Language models, as the engine calls them: one request, one answer, with what it used.

Which models there are, where they are and how they are paid for is the deployment's (adapters/models).
Turns, transcripts and limits of agents are in core/ and runtime/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from baton.core.models.usage import Price, Usage
from baton.core.tracing import Span
from baton.ports.process import StepFailure

STOP, CALLS, LENGTH = "stop", "calls", "length"


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool that a model asks for.
    `arguments` is the JSON text as the model wrote it, valid or not.
    """

    id: str
    name: str
    arguments: str


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model is told of it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class Draft:
    """What has come of an answer so far, for those who watch: `read` gives
    its text. The adapter says how, and keeps no copy for it.
    """

    __slots__ = ("read",)

    def __init__(self) -> None:
        self.read: Callable[[], str] = str


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request.
    `model` is a name of the deployment's, such as `gpt-5-mini` or `PROFILE/gpt-5-mini`.

    `messages` are those of the chat completions API: objects with `role` (system, user, assistant, tool),
    `content`, `tool_calls` and `tool_call_id`; equal beginnings are sent as equal bytes. `schema`: the JSON
    Schema of the answer, which is then JSON text. `most_output` tokens, reasoning inside, are generated at
    most (0: the model's own limit), and `most_input` are read at most, as its caller has reckoned (0: not
    reckoned). `until`: when the answer has to be there, whatever the stream does, in epoch milliseconds (0:
    in ten minutes). `key` names the request: a repetition has the same. `draft`: where the adapter says how
    its text can be read while it comes. `traceparent`: the trace that it belongs to; the provider is not
    told. `token`: what a request in the background carries, so that it is known again when it is over.
    """

    model: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[ToolOffer, ...] = ()
    schema: Any = None
    most_output: int = 0
    most_input: int = 0
    temperature: float | None = None
    until: int = 0
    key: str = ""
    token: str = ""
    draft: Draft | None = None
    traceparent: str = ""


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer.
    `finish` is `stop`, `calls` or `length`; `model` the one that has answered, as the provider names it.

    `usage` without tokens is not said, and counts as the most that the request can have used.
    """

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    finish: str = STOP
    usage: Usage = Usage()
    model: str = ""
    id: str = ""


class ModelFailure(StepFailure):
    """A request that has failed although the model has answered: it is billed.
    `usage`: what that used, where the provider says so.
    """

    def __init__(self, code: str, message: str, usage: Usage | None) -> None:
        super().__init__(code, message, happened=True)
        self.usage = usage


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the background that is over: its id at the provider, and the token that it carried."""

    response: str
    token: str


class Models(Protocol):
    """The models that a deployment may call."""

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Asks once, and retries nothing. Cancelling ends the request.

        Raises `StepFailure` with a code of core/failures/codes.py
        (`rate_limited`, `context_exceeded`, `content_policy`,
        `quota_exceeded`, `model_unavailable` …), its status and what `Retry-After` said.
        With `happened=True` the provider bills the request all the same; a
        request that is cancelled counts as billed, too.
        """
        ...

    async def submit(self, request: ModelRequest) -> str:
        """Hands the request over to the provider, which works on it while no caller waits.
        Returns its id there.

        `request.until` is of the handover, not of the answer. Raises as `answer` does; `model_unavailable`
        also where the profile offers nothing of the kind. With `happened=True` the provider may have the
        request all the same.
        """
        ...

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        """The answer to a request that was handed over; None while the provider works on it.

        Raises `ModelFailure` for a request that has ended without an answer, or of which the provider knows
        nothing any more, and `StepFailure` where nothing could be found out.
        """
        ...

    async def cancel(self, model: str, response: str) -> None:
        """Has the provider stop working on it; changes nothing where it is over. Raises `StepFailure`."""
        ...

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        """What a provider announces by a webhook; None where it is nothing that
        this deployment has asked for.

        Names of headers are in small letters.
        Raises `Unauthenticated` for what is not signed by the profile's secret, or too
        long ago, and `StepFailure` where the provider could not be asked what it is about.
        """
        ...

    def price(self, model: str) -> Price | None:
        """What a token of this model costs; None where none is known."""
        ...


class Spans(Protocol):
    """Keeps spans until they are sent. No step is worse off if they cannot be."""

    def note(self, span: Span) -> None: ...

    async def flush(self, within_ms: int) -> None:
        """Sends what there is; what the receiver does not take in this time is lost. Raises nothing."""
        ...
