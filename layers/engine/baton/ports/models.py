"""Port to language models: one request, one answer, with its usage.

The models, their addresses and their prices belong to the deployment (adapters/models). Turns, transcripts
and limits of agents are in core/ and runtime/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from baton.core.models.usage import Price, Usage
from baton.core.tracing import Span
from baton.ports.process import Draft as Draft
from baton.ports.process import StepFailure

STOP, CALLS, LENGTH = "stop", "calls", "length"


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """Call of a tool that a model asks for. `arguments`: JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a tool for a model. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request to a model.

    `model` is a name of the deployment's, such as `gpt-5-mini` or `PROFILE/gpt-5-mini`. `messages` are
    those of the chat completions API: objects with `role` (system, user, assistant, tool), `content`,
    `tool_calls` and `tool_call_id`, and the `echo` of an answer; `content` is text or parts; equal
    beginnings are sent as equal bytes. `schema`: the JSON Schema of the answer, which is then JSON text.
    `most_output` is the most tokens to generate, reasoning included (0: the model's own limit);
    `thinking`: `low`, `medium`, `high` or so many of them. `most_input` is the most tokens to read, by
    the caller's estimate (0: not estimated). `until`: deadline of the answer, in epoch milliseconds, even
    while the stream goes on (0: in ten minutes). `key` names the request: a repetition has the same.
    `draft`: the adapter sets on it how the text can be read while it arrives. `traceparent`: the trace of
    the request; it is not sent to the provider. `token`: carried by a request in the background, so that
    it is recognised when it is over.
    """

    model: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[ToolOffer, ...] = ()
    schema: Any = None
    most_output: int = 0
    most_input: int = 0
    temperature: float | None = None
    thinking: str | int | None = None
    until: int = 0
    key: str = ""
    token: str = ""
    draft: Draft | None = None
    traceparent: str = ""


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of a model.

    `finish` is `stop`, `calls` or `length`; `model` the one that has answered, as the provider names it. A
    `usage` without tokens means that the provider reported none; it counts as the most that the request can
    have used. `echo`: JSON that the provider wants to have back as the `echo` of this answer's message.
    """

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    finish: str = STOP
    usage: Usage = Usage()
    model: str = ""
    id: str = ""
    echo: Any = None


class ModelFailure(StepFailure):
    """Failure of a billed request, which the model has answered. `usage`: tokens, if reported."""

    def __init__(self, code: str, message: str, usage: Usage | None) -> None:
        super().__init__(code, message, happened=True)
        self.usage = usage


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """Completed request in the background: its id at the provider, and the token that it carried."""

    response: str
    token: str


EMBEDDING_DIMENSIONS: Final = 256
"""Numbers of a vector that a model is asked for."""


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """Vector of a text, and the tokens that it has cost."""

    vector: Sequence[float]
    usage: Usage


class Embedder(Protocol):
    """Models that a deployment may have texts embedded by."""

    async def embed(self, model: str, text: str, until: int) -> Embedding:
        """Return the vector of a text: of `EMBEDDING_DIMENSIONS` numbers, if the model can choose.

        Raises `StepFailure` as `Models.answer` does; `unsent` or a status from 400 to 499 has cost nothing.
        """
        ...


class Models(Protocol):
    """Models that a deployment may call."""

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Ask the model once, without retries.
        Cancelling ends the request.

        Raises `StepFailure` with a code of core/failures/codes.py (`rate_limited`, `context_exceeded`,
        `content_policy`, `quota_exceeded`, `model_unavailable` …), its status and the value of `Retry-After`.
        With `happened=True` the provider bills the request all the same; a request that is cancelled counts
        as billed, too.
        """
        ...

    async def submit(self, request: ModelRequest) -> str:
        """Hand the request over to the provider, which works on it while no caller waits.
        Return its id there.

        `request.until` is the deadline of the handover, not of the answer. Raises as `answer` does;
        `model_unavailable` also if the profile offers no background requests. With `happened=True` the
        provider may have the request all the same.
        """
        ...

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        """Return the answer to a request that was handed over; None while the provider works on it.

        Raises `ModelFailure` for a request that has ended without an answer, or that the provider no longer
        knows, and `StepFailure` if the provider could not be asked.
        """
        ...

    async def cancel(self, model: str, response: str) -> None:
        """Stop the provider's work on a request; a no-op if it is over. Raises `StepFailure`."""
        ...

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        """Return the completed request that a provider's webhook announces; None if this deployment did not
        make it.

        Names of headers are in small letters. Raises `Unauthenticated` for a webhook that is not signed by
        the profile's secret, or was signed too long ago, and `StepFailure` if the provider could not be asked
        about it.
        """
        ...

    def price(self, model: str) -> Price | None:
        """Return the price of a token of this model; None if no price is known.

        `PROVIDER/MODEL` may name a provider without a profile.
        """
        ...


class Spans(Protocol):
    """Buffer of spans until they are sent. A lost span harms no step."""

    def note(self, span: Span) -> None: ...

    async def flush(self, within_ms: int) -> None:
        """Send the buffered spans; what the receiver does not take in time is lost. Raises nothing."""
        ...
