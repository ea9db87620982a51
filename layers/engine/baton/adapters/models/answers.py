"""The answer of a model, out of the parts that come one after the other. Pure; where they come from is openai_exchange.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from baton.adapters.models.usage_said import UsageSaid
from baton.core.models.usage import Usage
from baton.ports import StepFailure
from baton.ports.models import CALLS, LENGTH, STOP, ModelAnswer, ModelCall, ModelFailure

_FINISHES: Final = {"stop": STOP, "tool_calls": CALLS, "function_call": CALLS, "length": LENGTH}
_MOST_CALLS: Final = 128
_MOST_TEXT: Final = 4 * 1_048_576  # characters, arguments of calls included


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
    message: _Delta | None = None  # of an answer that came whole although a stream was asked for
    finish_reason: str | None = None
    usage: Any = None  # where some say it in place of beside the choices


class _Part(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: Any = None


class _Begun:
    """A call that is being written."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id, self.name = "", ""
        self.arguments: list[str] = []

    def size(self) -> int:
        return len(self.name.encode()) + len("".join(self.arguments).encode())

    def is_other(self, call: _Call) -> bool:
        """Tell whether a part of the same index begins another call: some providers give each of several calls the index 0."""
        said = call.function or _Function()
        if not said.name or not self.name:
            return False  # only the first part of a call has its name
        if said.name != self.name or (call.id and self.id and call.id != self.id):
            return True
        return not call.id and (said.arguments or "").lstrip()[:1] == "{" and self._is_whole()

    def _is_whole(self) -> bool:
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            msgspec.json.decode("".join(self.arguments))
        except (msgspec.DecodeError, RecursionError):
            return False
        return True


class Collected:
    """Takes the parts of one answer."""

    def __init__(self, host: str, body: Mapping[str, Any], most_input: int = 0) -> None:
        """host: for messages. body: of the request, and `most_input` that it reads, for providers that do not count."""
        self._host, self._body, self._most_input = host, body, most_input
        self._id = self._model = self._finish = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Begun] = []
        self._said = UsageSaid()
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
        self._said.see(part.usage)
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
        in_order = sorted(self._calls, key=lambda begun: begun.index)
        calls = tuple(self._called(begun, number) for number, begun in enumerate(in_order))
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
        written = len(self.text().encode()) + sum(call.size() for call in self._calls)
        read = self._most_input or len(msgspec.json.encode(self._body))
        most = int(self._body.get("max_completion_tokens") or written)
        return self._said.usage(self._model, read, most, is_empty=not written)

    def _choice(self, choice: _Choice) -> None:
        self._said.see(choice.usage)
        self._finish = choice.finish_reason or self._finish
        delta = choice.delta
        if delta is None and not self._size:
            delta = choice.message
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
        begun = self._begun(index, call)
        begun.id = begun.id or call.id or ""
        if call.function is not None:
            begun.name = begun.name or call.function.name or ""
            begun.arguments.append(call.function.arguments or "")
            self._size += len(begun.arguments[-1])

    def _begun(self, index: int, call: _Call) -> _Begun:
        """The call that a part belongs to: of several with its index the one with its id, else the last."""
        there = [one for one in self._calls if one.index == index]
        begun = next((one for one in there if call.id and one.id == call.id), there[-1] if there else None)
        if begun is not None and not begun.is_other(call):
            return begun
        if len(self._calls) >= _MOST_CALLS:
            raise self._unreadable(f"it asks for more than {_MOST_CALLS} calls")
        self._calls.append(_Begun(index))
        return self._calls[-1]

    def _called(self, begun: _Begun, number: int) -> ModelCall:
        if not begun.name:
            raise self._unreadable("a call in it has no name")
        return ModelCall(id=begun.id or f"call_{number}", name=begun.name, arguments="".join(begun.arguments))

    def _refused(self, why: str) -> ModelFailure:
        return ModelFailure("content_policy", why, self.usage() if self._said.is_said else None)

    def _unreadable(self, why: str) -> ModelFailure:
        said = f"the answer of {self._host} cannot be read: {why}"
        return ModelFailure("invalid_response", said, self.usage() if self._said.is_said else None)
