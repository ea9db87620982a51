"""The answer of a model, out of the parts that come one after the other. Pure; where they come from is openai_exchange.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from baton.core.models.usage import Usage
from baton.ports import StepFailure
from baton.ports.models import CALLS, LENGTH, STOP, ModelAnswer, ModelCall, ModelFailure

_FINISHES: Final = {"stop": STOP, "tool_calls": CALLS, "function_call": CALLS, "length": LENGTH}
_MOST_CALLS: Final = 128
_MOST_TEXT: Final = 4 * 1_048_576  # characters, arguments of calls included
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _OfInput(msgspec.Struct):
    cached_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None


class _OfOutput(msgspec.Struct):
    reasoning_tokens: _Count | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    prompt_tokens_details: _OfInput | None = None
    completion_tokens_details: _OfOutput | None = None


class _Part(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


class _Begun:
    """A call that is being written."""

    def __init__(self) -> None:
        self.id, self.name = "", ""
        self.arguments: list[str] = []

    def size(self) -> int:
        return len(self.name.encode()) + len("".join(self.arguments).encode())


class Collected:
    """Takes the parts of one answer."""

    def __init__(self, host: str, body: Mapping[str, Any]) -> None:
        """host: for messages. body: of the request, for providers that do not count."""
        self._host, self._body = host, body
        self._id = self._model = self._finish = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, _Begun] = {}
        self._usage: _Usage | None = None
        self._size = 0
        self.has_begun = False
        """Whether a part of it has come: then the provider bills it."""

    def take(self, data: Any) -> None:
        """One part, as JSON. Raises `StepFailure`."""
        try:
            part = msgspec.convert(data, _Part)
        except msgspec.ValidationError as error:
            raise self._unreadable(str(error)) from error
        self.has_begun = True
        self._id, self._model = self._id or part.id or "", self._model or part.model or ""
        self._usage = part.usage or self._usage
        for choice in part.choices or ():
            self._choice(choice)

    def text(self) -> str:
        """What has come of its text."""
        return "".join(self._text)

    def answer(self) -> ModelAnswer:
        """The whole. Raises `StepFailure`: the provider has filtered it, the model has refused, or it has no end."""
        if self._finish == "content_filter":
            raise self._refused(f"{self._host} has filtered the answer")
        if self._refusal:
            raise self._refused(f"the model refuses to answer: {''.join(self._refusal)[:500]}")
        if self._finish not in _FINISHES:
            ended = f"with the reason `{self._finish[:40]}`" if self._finish else "before its end"
            raise self._unreadable(f"it ended {ended}")
        calls = tuple(self._called(begun) for _, begun in sorted(self._calls.items()))
        finish = _FINISHES[self._finish]
        if finish != LENGTH:  # some providers say `stop` with calls, or the other way round
            finish = CALLS if calls else STOP
        return ModelAnswer(
            text=self.text(),
            calls=calls,
            finish=finish,
            usage=self.usage(),
            model=self._model,
            id=self._id,
        )

    def usage(self) -> Usage:
        """What was used; the most that it can be where the provider does not say: no token is shorter than a byte."""
        used = self._usage
        if used is None:
            written = len(self.text().encode()) + sum(call.size() for call in self._calls.values())
            return Usage(model=self._model, input=len(msgspec.json.encode(self._body)), output=written)
        of_input = used.prompt_tokens_details or _OfInput()
        of_output = used.completion_tokens_details or _OfOutput()
        return Usage(
            model=self._model,
            input=used.prompt_tokens,
            cached=of_input.cached_tokens or 0,
            written=of_input.cache_write_tokens or 0,
            output=used.completion_tokens,
            reasoning=of_output.reasoning_tokens or 0,
        )

    def _choice(self, choice: _Choice) -> None:
        self._finish = choice.finish_reason or self._finish
        delta = choice.delta
        if delta is None:
            return
        self._size += len(delta.content or "") + len(delta.refusal or "")
        if delta.content:
            self._text.append(delta.content)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        for position, call in enumerate(delta.tool_calls or ()):
            self._call(position if call.index is None else call.index, call)
        if self._size > _MOST_TEXT:
            raise StepFailure(
                "result_too_large",
                f"the answer of {self._host} has more than {_MOST_TEXT} characters",
                happened=True,
            )

    def _call(self, index: int, call: _Call) -> None:
        if len(self._calls) >= _MOST_CALLS and index not in self._calls:
            raise self._unreadable(f"it asks for more than {_MOST_CALLS} calls")
        begun = self._calls.setdefault(index, _Begun())
        begun.id = begun.id or call.id or ""
        if call.function is not None:
            begun.name = begun.name or call.function.name or ""
            begun.arguments.append(call.function.arguments or "")
            self._size += len(begun.arguments[-1])

    def _called(self, begun: _Begun) -> ModelCall:
        if not begun.id or not begun.name:
            raise self._unreadable("a call in it has no name")
        return ModelCall(id=begun.id, name=begun.name, arguments="".join(begun.arguments))

    def _refused(self, why: str) -> ModelFailure:
        return ModelFailure("content_policy", why, self.usage() if self._usage else None)

    def _unreadable(self, why: str) -> ModelFailure:
        said = f"the answer of {self._host} cannot be read: {why}"
        return ModelFailure("invalid_response", said, self.usage() if self._usage else None)
