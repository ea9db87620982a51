"""The answer of a model, out of the parts that come one after the other.
Pure; where they come from is openai_exchange.py.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from baton.core.failures import quoted
from baton.core.failures.secret_names import REDACTED
from baton.core.models.usage import Usage, most_used
from baton.ports import StepFailure
from baton.ports.models import CALLS, LENGTH, STOP, ModelAnswer, ModelCall, ModelFailure

_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
_CACHED: Final = ("cached_tokens", "cache_read_input_tokens")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation_input_tokens")
"""The second of both stands beside `input_tokens` that are without it."""
_FIGURES: Final = (*_INPUT, *_OUTPUT, *_CACHED, *_WRITTEN, "total_tokens", "reasoning_tokens")
_DETAILS: Final = (
    "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details",
)  # fmt: skip


class UsageCounts:
    """Token counts of one answer. Of several reports, as sums or in part, the highest counts."""

    def __init__(self) -> None:
        self._figures: dict[str, int] = {}

    def see(self, usage: Any) -> None:
        """Take the numbers of a `usage` as it came."""
        if not isinstance(usage, Mapping):
            return
        places = [usage, *(inner for name in _DETAILS if isinstance(inner := usage.get(name), Mapping))]
        for name in _FIGURES:
            counts = [count for place in places if (count := _count(place.get(name))) is not None]
            if counts:
                self._figures[name] = max(self._figures.get(name, 0), *counts)

    @property
    def is_said(self) -> bool:
        """Return true if anything is known of what was used."""
        return any(map(self._of, ("total_tokens", *_INPUT, *_OUTPUT)))

    def usage(self, model: str, read: int, written: int, *, is_empty: bool = False) -> Usage:
        """Return the usage, at most `read` and `written` tokens. `is_empty`: the request has no answer."""
        if not self.is_said:
            return most_used(model, read, written)
        given, output, total = self._input(), max(map(self._of, _OUTPUT)), self._of("total_tokens")
        reasoning = self._of("reasoning_tokens")
        if given and total > given + output:  # thinking may be counted beside the rest of the answer
            output = total - given
        elif given and output:
            output += reasoning if reasoning > output else 0
        elif given:
            is_none = is_empty and any(name in self._figures for name in _OUTPUT)
            output = 0 if is_none else written
        elif output:
            given = total - output if total > output else read
        else:  # the sum alone: a token of output is the dearer one
            output = min(total, written) or total
            given = total - output
        return Usage(
            model=model,
            input=given,
            cached=max(map(self._of, _CACHED)),
            written=max(map(self._of, _WRITTEN)),
            output=output,
            reasoning=min(reasoning, output),
        )

    def _input(self) -> int:
        if self._of("prompt_tokens") or not self._of("input_tokens"):
            return self._of("prompt_tokens")
        return sum(map(self._of, ("input_tokens", _CACHED[1], _WRITTEN[1])))

    def _of(self, name: str) -> int:
        return self._figures.get(name, 0)


def _count(value: Any) -> int | None:
    """Return a number of tokens; None for an invalid one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


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
        """Return true if a part begins another call: some providers give each the index 0."""
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


class AnswerCollector:
    """Collector of the parts of one answer."""

    def __init__(self, host: str, body: Mapping[str, Any], most_input: int = 0) -> None:
        """Collect an answer to `body`. `host`: for messages. `most_input`: tokens, if uncounted."""
        self._host, self._body, self._most_input = host, body, most_input
        self._id = self._model = self._finish = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Begun] = []
        self._said = UsageCounts()
        self._size = 0
        self.has_begun = False
        """True if a part of the answer has arrived: then the provider bills it."""

    def take(self, data: Any) -> None:
        """Take one part, as JSON. Raises `StepFailure`."""
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
        """Return the text that has arrived."""
        return "".join(self._text)

    def answer(self) -> ModelAnswer:
        """Return the whole answer. Raises `StepFailure` if it is filtered, refused, or has no end."""
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
            text=self.text(), calls=calls, finish=finish, usage=self.usage(), model=self._model, id=self._id
        )

    def usage(self) -> Usage:
        """Return the usage; its maximum if the provider reports none: no token is shorter than a byte."""
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
        """Return the call that a part belongs to: that of its index with its id, else the last."""
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


_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
_LONGEST_FIELD: Final = 16
_is_stream = re.compile(rb":|(data|event|id|retry)\s*(:|[\r\n]|$)").match
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_MOST_PAGE, _TOLD = 8_192, 200
_SAYS: Final = ("message", "detail", "msg")


async def as_stream(parts: AsyncIterable[bytes], host: str) -> AsyncIterator[bytes]:
    """Yield the bytes of an answer as a stream, if need be of one part. Raises `StepFailure` for others."""
    begin, source = b"", aiter(parts)
    async for part in source:
        begin += part
        if len(begin.lstrip(_BLANK)) >= _LONGEST_FIELD:
            break
    first = begin.lstrip(_BLANK)
    if not first or _is_stream(first):
        yield begin
        async for part in source:
            yield part
        return
    is_json = first[:1] in b"{["
    rest = [first]
    async for part in source:
        rest.append(part)
        if not is_json and sum(map(len, rest)) > _MOST_PAGE:
            break
    whole = b"".join(rest)
    if not is_json:
        raise _no_answer(whole.decode(errors="replace"), host)
    try:
        data = msgspec.json.decode(whole)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise StepFailure(
            "invalid_response", f"the answer of {host} is JSON that cannot be read", happened=True
        ) from None
    for one in data if isinstance(data, list) else [data]:
        yield b"data: " + msgspec.json.encode(one) + b"\n\n"


def error_in(part: Any) -> Mapping[str, Any] | None:
    """Return the error of a part, of a provider that does not put it under `error`."""
    if not isinstance(part, Mapping) or "choices" in part or "usage" in part:
        return None
    text = next((part[name] for name in _SAYS if isinstance(part.get(name), str)), None)
    if text is None and part.get("object") != "error":
        return None
    return {**part, "message": text or "it says no more"}


def _no_answer(text: str, host: str) -> StepFailure:
    if not text.startswith("<"):
        return StepFailure(
            "invalid_response", f"{host} answered with text in place of a stream: {quoted(text, _TOLD)}"
        )
    title = _TITLE.search(text)
    named = f" (`{quoted(' '.join(title[1].split()), _TOLD)}`)" if title else ""
    return StepFailure(
        "invalid_response",
        f"{host} answered with a page{named}; look at the address of the profile, and at what stands before it",
    )


_SECRET: Final = 6  # a shorter one is no secret, and may stand in any text


def answer_without(answer: ModelAnswer, credential: str) -> ModelAnswer:
    """Return the answer without the credential, as it is and as JSON writes it."""
    if not any(form in part for form in _forms(credential) for part in _parts(answer)):
        return answer
    calls = tuple(
        replace(call, arguments=redact_credential(call.arguments, credential)) for call in answer.calls
    )
    return replace(answer, text=redact_credential(answer.text, credential), calls=calls)


def redact_credential(value: Any, credential: str) -> Any:
    """Return the JSON value without the credential."""
    if isinstance(value, str):
        for form in _forms(credential):
            value = value.replace(form, REDACTED)
        return value
    if isinstance(value, list):
        return [redact_credential(one, credential) for one in value]
    if isinstance(value, dict):
        return {name: redact_credential(one, credential) for name, one in value.items()}
    return value


def _parts(answer: ModelAnswer) -> tuple[str, ...]:
    return answer.text, *(call.arguments for call in answer.calls)


def _forms(credential: str) -> tuple[str, ...]:
    if len(credential) < _SECRET:
        return ()
    return tuple(dict.fromkeys((credential, msgspec.json.encode(credential).decode()[1:-1])))
