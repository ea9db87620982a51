"""The answer of a model: JSON parts out of bytes, and the answer out of the parts.

The forms are those of many servers: a value that is not of its type is read as none. Pure; the bytes come
from exchange.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from baton.core.failures import quoted
from baton.core.failures.secret_names import REDACTED
from baton.core.models.usage import Usage, most_used
from baton.ports import StepFailure
from baton.ports.models import CALLS, LENGTH, STOP, ModelAnswer, ModelCall, ModelFailure

DONE: Final = "[DONE]"
"""The part by which an answer says that it is whole."""
FRAMES: Final = "application/vnd.amazon.eventstream"
_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
_LONGEST_FIELD: Final = 16
_is_stream = re.compile(rb":|(data|event|id|retry)\s*(:|[\r\n]|$)").match
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_MOST_PAGE, _TOLD = 8_192, 200
_SAYS: Final = ("message", "detail", "msg", "Message", "error", "errors", "error_message", "description")
_MOST_LEVELS, _MOST_WORDS = 6, 3
_UNREADABLE: Final = (ValueError, RecursionError)


async def parts_of(chunks: AsyncIterable[bytes], host: str, media: str = "") -> AsyncIterator[Any]:
    """Yield the parts of an answer, and `DONE` where it says that it is whole. Raises `StepFailure`.

    `media` is its type, which only AWS's frames are told by: everything else is classed by what it is.
    """
    if media.startswith(FRAMES):
        async for part in _framed(chunks, host):
            yield part
        return
    begin, source = b"", aiter(chunks)
    async for chunk in source:
        begin += chunk
        if len(begin.lstrip(_BLANK)) >= _LONGEST_FIELD:
            break
    first = begin.lstrip(_BLANK)
    if not first or _is_stream(first):
        async for event, data in _events(first, source):
            if (part := _read(event, data, host)) is not None:
                yield part
            if part == DONE:
                return
        return
    async for part in _whole(first, source, host):
        yield part


async def _whole(begin: bytes, source: AsyncIterator[bytes], host: str) -> AsyncIterator[Any]:
    """Yield the parts of an answer that is one document."""
    is_json, rest = begin[:1] in b"{[", [begin]
    async for chunk in source:
        rest.append(chunk)
        if not is_json and sum(map(len, rest)) > _MOST_PAGE:
            break
    whole = b"".join(rest)
    if not is_json:
        raise StepFailure("invalid_response", _no_answer(whole.decode(errors="replace"), host))
    try:
        data = json.loads(whole)
    except _UNREADABLE:
        raise _unreadable(host, "it is JSON that is none") from None
    for part in data if isinstance(data, list) else [data]:
        yield part
    yield DONE


async def _events(begin: bytes, source: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, bytes]]:
    """Yield the type and the data of each event of a stream, also of a last one that nothing follows."""
    event, data, rest = "", list[bytes](), [begin]
    is_over = False
    while not is_over:
        *lines, last = b"".join(rest).split(b"\n")
        rest = [last]
        if (chunk := await anext(source, None)) is None:
            is_over, lines = True, [*lines, last, b""]
        else:
            rest.append(chunk)
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif name == b"event":
                event = value.strip().decode(errors="replace")
            elif not name and not value and not line.startswith(b":"):
                if data:
                    yield event, b"\n".join(data)
                event, data = "", []


def _read(event: str, data: bytes, host: str) -> Any:
    """Return the part in an event; None for one without."""
    text = data.strip()
    if not text or text.startswith(DONE.encode()):
        return DONE if text else None
    is_error = event == "error"
    try:
        part = json.loads(text)
    except _UNREADABLE:
        if not is_error:
            raise _unreadable(host, "a part of it is no JSON") from None
        part = text.decode(errors="replace")
    if is_error and not (isinstance(part, Mapping) and part.get("error")):
        return {"error": part}
    return part


async def _framed(chunks: AsyncIterable[bytes], host: str) -> AsyncIterator[Any]:
    """Yield the events of AWS's frames, each as an object of its type and its content."""
    from botocore.eventstream import EventStreamBuffer, ParserError

    buffer = EventStreamBuffer()
    try:
        async for chunk in chunks:
            buffer.add_data(chunk)
            for frame in buffer:
                headers: Mapping[str, Any] = frame.headers  # type: ignore[assignment]  # its stubs say a number
                part = json.loads(frame.payload or b"{}")
                if headers.get(":message-type") == "event":
                    yield {headers.get(":event-type", ""): part}
                    continue
                code = str(headers.get(":exception-type") or headers.get(":error-code") or "")
                said = words_of(part) or str(headers.get(":error-message", ""))
                yield {"error": {"code": code[:1].upper() + code[1:], "message": said or code}}
    except (ParserError, *_UNREADABLE):
        raise _unreadable(host, "a frame of it is none") from None


def error_in(part: Any) -> Mapping[str, Any] | None:
    """Return the error that stands in a part of an answer, or in place of one, with its `message`."""
    if not isinstance(part, Mapping):
        return None
    choices = part.get("choices")
    for one in (part, *(choices if isinstance(choices, list) else ())):
        if isinstance(one, Mapping) and (error := one.get("error")):
            return {**(error if isinstance(error, Mapping) else {}), "message": words_of(error) or _NO_WORDS}
    if "choices" in part or "usage" in part:
        return None
    text = words_of({name: part.get(name) for name in ("message", "detail", "msg")})
    if not text and part.get("object") != "error":
        return None
    return {**part, "message": text or _NO_WORDS}


_NO_WORDS: Final = "it says no more"


def words_of(body: Any, levels: int = _MOST_LEVELS) -> str:
    """Return what an error says in words, wherever its server puts them; empty if nowhere."""
    if isinstance(body, str):
        return _page_words(body) if body.lstrip().startswith("<") else body
    if isinstance(body, list) and levels:
        return "; ".join(filter(None, (words_of(one, levels - 1) for one in body[:_MOST_WORDS])))
    if not isinstance(body, Mapping) or not levels:
        return ""
    said = next((text for name in _SAYS if (text := words_of(body.get(name), levels - 1))), "")
    place = body.get("loc")
    return f"{'.'.join(map(str, place))}: {said}" if said and isinstance(place, list) else said


def _page_words(text: str) -> str:
    title = _TITLE.search(text)
    return "a page" + (f" (`{quoted(' '.join(title[1].split()), _TOLD)}`)" if title else "")


def _no_answer(text: str, host: str) -> str:
    if not text.startswith("<"):
        return f"{host} answered with text in place of a stream: {quoted(text, _TOLD)}"
    page = _page_words(text)
    return f"{host} answered with {page}; look at the address of the profile, and at what stands before it"


def _unreadable(host: str, why: str) -> StepFailure:
    return StepFailure("invalid_response", f"the answer of {host} cannot be read: {why}", happened=True)


_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
_CACHED: Final = ("cached_tokens", "cache_read_input_tokens")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation_input_tokens")
"""The second of both stands beside `input_tokens` that are without it."""
_OTHER_NAMES: Final = {
    "prompt_token_count": "prompt_tokens",
    "prompt_eval_count": "prompt_tokens",
    "candidates_token_count": "completion_tokens",
    "eval_count": "completion_tokens",
    "total_token_count": "total_tokens",
    "thoughts_token_count": "reasoning_tokens",
    "cached_content_token_count": "cached_tokens",
    "prompt_cache_hit_tokens": "cached_tokens",
    "cache_write_input_tokens": "cache_creation_input_tokens",
}
_FIGURES: Final = frozenset(
    {*_INPUT, *_OUTPUT, *_CACHED, *_WRITTEN, "total_tokens", "reasoning_tokens", "prompt_tokens"}
)
_DETAILS: Final = (
    "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details",
)  # fmt: skip
_humps = re.compile("(?<=[a-z])(?=[A-Z])").sub


class UsageCounts:
    """Token counts of one answer. Of several reports, as sums or in part, the highest counts."""

    def __init__(self) -> None:
        self._figures: dict[str, int] = {}

    def see(self, usage: Any) -> None:
        """Take the numbers of a `usage` as it came."""
        if not isinstance(usage, Mapping):
            return
        places = [usage, *(inner for name in _DETAILS if isinstance(inner := usage.get(name), Mapping))]
        for said, value in (pair for place in places for pair in place.items()):
            plain = _humps("_", str(said)).lower()
            name, count = _OTHER_NAMES.get(plain, plain), _count(value)
            if name in _FIGURES and count is not None:
                self._figures[name] = max(self._figures.get(name, 0), count)

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


_FILTERED, _BROKEN = "filtered", "broken"
_ENDS: Final = (
    (_FILTERED, re.compile("filter|safety|refus|prohibit|blocklist|guardrail|recitation|spii")),
    (_BROKEN, re.compile("error|malformed|abort|fail|cancel|insufficient|overload|unexpected")),
    (LENGTH, re.compile("length|max|context")),
)
_MOST_CALLS: Final = 128
_MOST_TEXT: Final = 4 * 1_048_576  # characters, arguments of calls and thinking included
_THOUGHTS: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})
_KINDS: Final = frozenset({"type", "id", "format"})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _said_in(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the text and the refusal of each part of a content; thinking is neither."""
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, str):
            yield one, ""
        elif isinstance(one, Mapping) and one.get("type") not in _THOUGHTS:
            yield _text(one.get("text")), _text(one.get("refusal"))


class _Piece(NamedTuple):
    """The words of one part about a call."""

    id: str
    name: str
    arguments: str
    extra: Any = None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> _Piece:
        function = call.get("function")
        said = function if isinstance(function, Mapping) else {}
        arguments = said.get("arguments")
        if arguments is None or isinstance(arguments, str):
            text = arguments or ""
        else:
            text = msgspec.json.encode(arguments).decode()
        return cls(_text(call.get("id")), _text(said.get("name")), text, call.get("extra_content"))


class _Begun:
    """A call that is being written."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id, self.name = "", ""
        self.arguments: list[str] = []
        self.extra: Any = None

    def size(self) -> int:
        return len(self.name.encode()) + len("".join(self.arguments).encode())

    def add(self, piece: _Piece) -> None:
        self.extra = piece.extra or self.extra
        if piece.id and piece.id == self.id and piece.name and self._is_whole():
            return  # said once more
        self.id, self.name = self.id or piece.id, self.name or piece.name
        self.arguments.append(piece.arguments)

    def is_other(self, piece: _Piece) -> bool:
        """Return true if a part begins another call: some providers give each the index 0, or one id."""
        if not piece.name or not self.name:
            return False  # only the first part of a call has its name
        if piece.name != self.name or (piece.id and self.id and piece.id != self.id):
            return True
        if piece.id and piece.arguments == "".join(self.arguments):
            return False
        return piece.arguments.lstrip()[:1] == "{" and self._is_whole()

    def _is_whole(self) -> bool:
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            msgspec.json.decode("".join(self.arguments))
        except (msgspec.DecodeError, RecursionError):
            return False
        return True


class _Echo:
    """Thinking and signatures that a provider wants to have back with the calls of its answer."""

    def __init__(self) -> None:
        self.size = 0
        self._fields: dict[str, Any] = {}
        self._details: list[dict[str, Any]] = []

    def see(self, delta: Mapping[str, Any]) -> None:
        if thought := _text(delta.get("reasoning_content")):
            self._fields["reasoning_content"] = self._fields.get("reasoning_content", "") + thought
            self.size += len(thought)
        if isinstance(delta.get("extra_content"), Mapping):
            self._fields["extra_content"] = delta["extra_content"]
        for piece in _objects(delta.get("reasoning_details")):
            self._detail(piece)

    def _detail(self, piece: Mapping[str, Any]) -> None:
        self.size += sum(len(value) for value in piece.values() if isinstance(value, str))
        last = self._details[-1] if self._details else {}
        if not last or (last.get("index"), last.get("type")) != (piece.get("index"), piece.get("type")):
            self._details.append(dict(piece))
            return
        for name, value in piece.items():
            is_more = isinstance(value, str) and isinstance(last.get(name), str) and name not in _KINDS
            if is_more or value is not None:
                last[name] = last[name] + value if is_more else value

    def data(self, profile: str, calls: list[_Begun]) -> dict[str, Any] | None:
        """Return it for the transcript; None if there is nothing, or no call to go on from."""
        message = self._fields | ({"reasoning_details": self._details} if self._details else {})
        extras = {str(number): call.extra for number, call in enumerate(calls) if call.extra}
        if not calls or not (message or extras):
            return None
        return {"profile": profile, "message": message, "calls": extras}


class AnswerCollector:
    """Collector of the parts of one answer."""

    def __init__(self, host: str, body: Mapping[str, Any], most_input: int = 0, profile: str = "") -> None:
        """Collect an answer to `body`. `host`: for messages. `most_input`: tokens, if uncounted."""
        self._host, self._body, self._most_input, self._profile = host, body, most_input, profile
        self._id = self._model = self._finish = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Begun] = []
        self._echo = _Echo()
        self._said = UsageCounts()
        self._size = 0
        self._is_done = False
        self.has_begun = False
        """True if a part of the answer has arrived: then the provider bills it."""

    @property
    def model(self) -> str:
        """Model that is asked."""
        return str(self._body["model"])

    @property
    def is_whole(self) -> bool:
        """True if the answer has said how it ends, and that is no error."""
        return bool(self._finish) and _end(self._finish) != _BROKEN

    def take(self, part: Any) -> None:
        """Take one part, as JSON. Raises `StepFailure`."""
        if part is None or part == DONE:
            self._is_done = self._is_done or part == DONE
            return
        if not isinstance(part, Mapping):
            raise self._unreadable("a part of it is no object")
        choices = _objects(part.get("choices"))
        self.has_begun = self.has_begun or bool(choices)
        self._id, self._model = self._id or _text(part.get("id")), self._model or _text(part.get("model"))
        self._said.see(part.get("usage"))
        if isinstance(groq := part.get("x_groq"), Mapping):
            self._said.see(groq.get("usage"))
        for choice in choices:
            self._choice(choice)

    def text(self) -> str:
        """Return the text that has arrived."""
        return "".join(self._text)

    def answer(self) -> ModelAnswer:
        """Return the whole answer. Raises `StepFailure` if it is filtered, refused, or has no end."""
        end = _end(self._finish)
        if end == _FILTERED:
            raise self._refused(f"{self._host} has filtered the answer")
        if self._refusal:
            raise self._refused(f"the model refuses to answer: {''.join(self._refusal)[:500]}")
        if end == _BROKEN:
            raise self._unreadable(f"it ended with the reason `{self._finish[:40]}`")
        if not self._finish and not (self._is_done and self.has_begun):
            raise self._unreadable("it ended before its end")
        in_order = sorted(self._calls, key=lambda begun: begun.index)
        calls = tuple(self._called(begun, number, in_order) for number, begun in enumerate(in_order))
        # Some providers say `stop` with calls, or the other way round.
        finish = LENGTH if end == LENGTH else CALLS if calls else STOP
        return ModelAnswer(
            text=self.text(),
            calls=calls,
            finish=finish,
            usage=self.usage(),
            model=self._model or self.model,
            id=self._id,
            echo=self._echo.data(self._profile, in_order),
        )

    def usage(self) -> Usage:
        """Return the usage; its maximum if the provider reports none: no token is shorter than a byte."""
        written = len(self.text().encode()) + sum(call.size() for call in self._calls)
        read = self._most_input or len(msgspec.json.encode(self._body))
        most = int(next((self._body[name] for name in LIMITS if self._body.get(name)), written))
        return self._said.usage(self._model or self.model, read, most, is_empty=not written)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        self._said.see(choice.get("usage"))
        self._finish = _text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        if not isinstance(delta, Mapping) and not self._size:
            delta = choice.get("message")  # of an answer that came whole although a stream was asked for
        if not isinstance(delta, Mapping):
            return
        for text, refusal in (*_said_in(delta.get("content")), ("", _text(delta.get("refusal")))):
            self._size += len(text) + len(refusal)
            self._text += [text] if text else []
            self._refusal += [refusal] if refusal else []
        self._echo.see(delta)
        calls = _objects(delta.get("tool_calls"))
        if isinstance(older := delta.get("function_call"), Mapping):
            calls.append({"index": 0, "function": older})
        for position, call in enumerate(calls):
            index = _text(call.get("index"))
            self._call(int(index) if index.isdecimal() and len(index) < 6 else position, _Piece.of(call))
        if self._size + self._echo.size > _MOST_TEXT:
            raise StepFailure(
                "result_too_large",
                f"the answer of {self._host} has more than {_MOST_TEXT} characters",
                happened=True,
            )

    def _call(self, index: int, piece: _Piece) -> None:
        self._begun(index, piece).add(piece)
        self._size += len(piece.arguments)

    def _begun(self, index: int, piece: _Piece) -> _Begun:
        """Return the call that a part belongs to: that of its index with its id, else the last."""
        there = [one for one in self._calls if one.index == index]
        # Of several with one id the last is being written.
        same = [one for one in there if piece.id and one.id == piece.id] or there
        if same and not same[-1].is_other(piece):
            return same[-1]
        if len(self._calls) >= _MOST_CALLS:
            raise self._unreadable(f"it asks for more than {_MOST_CALLS} calls")
        self._calls.append(_Begun(index))
        return self._calls[-1]

    def _called(self, begun: _Begun, number: int, calls: list[_Begun]) -> ModelCall:
        if not begun.name:
            raise self._unreadable("a call in it has no name")
        is_own = begun.id and sum(one.id == begun.id for one in calls) == 1
        return ModelCall(
            id=begun.id if is_own else f"call_{number}", name=begun.name, arguments="".join(begun.arguments)
        )

    def _refused(self, why: str) -> ModelFailure:
        return ModelFailure("content_policy", why, self.usage() if self._said.is_said else None)

    def _unreadable(self, why: str) -> ModelFailure:
        said = f"the answer of {self._host} cannot be read: {why}"
        return ModelFailure("invalid_response", said, self.usage() if self._said.is_said else None)


LIMITS: Final = ("max_completion_tokens", "max_tokens")
"""Names under which servers take the most tokens of an answer."""


def _end(reason: str) -> str:
    """Return how an answer ended, by the reason in any server's words."""
    said = reason.lower()
    return next((end for end, words in _ENDS if words.search(said)), STOP)


_SECRET: Final = 6  # a shorter one is no secret, and may stand in any text


def answer_without(answer: ModelAnswer, credential: str) -> ModelAnswer:
    """Return the answer without the credential, as it is and as JSON writes it."""
    if not any(form in part for form in _forms(credential) for part in _parts(answer)):
        return answer
    calls = tuple(
        replace(call, arguments=redact_credential(call.arguments, credential)) for call in answer.calls
    )
    text, echo = redact_credential(answer.text, credential), redact_credential(answer.echo, credential)
    return replace(answer, text=text, calls=calls, echo=echo)


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
    echo = msgspec.json.encode(answer.echo).decode() if answer.echo else ""
    return answer.text, echo, *(call.arguments for call in answer.calls)


def _forms(credential: str) -> tuple[str, ...]:
    if len(credential) < _SECRET:
        return ()
    return tuple(dict.fromkeys((credential, msgspec.json.encode(credential).decode()[1:-1])))
