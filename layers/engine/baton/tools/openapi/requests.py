"""A request from the arguments of an operation: all their problems at once, or their places. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from baton.core.conditions.schema import violations
from baton.core.expressions import escape
from baton.errors import Problem
from baton.tools.openapi.description import Operation, Parameter, Scheme, is_json

_BETWEEN: Final[Mapping[str, str]] = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_IN_PATHS: Final = "/:@!$&'()*+,;=-._~%{}"  # of a description's own text
_SECRET: Final = 6
_STEPS: Final = re.compile(r"[/\\]")

Pairs = list[tuple[str, str]]
"""Names and values, encoded: what stands between values stays as the style has it."""


class OperationRequest(NamedTuple):
    """Request of an operation, before its credential is added."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes

    def with_credential(self, scheme: Scheme, credential: str) -> OperationRequest:
        """Put the credential where the description wants it, whatever the arguments have put there."""
        if scheme.kind == "query":
            more = urlencode({scheme.name: credential}, quote_via=quote)
            return self._replace(url=f"{self.url}{'&' if '?' in self.url else '?'}{more}")
        name, value = "authorization", f"Bearer {credential}"
        if scheme.kind == "basic":
            value = f"Basic {_encoded(credential)}"
        elif scheme.kind == "header":
            name, value = scheme.name.lower(), credential
        elif scheme.kind == "cookie":
            name, value = "cookie", f"{scheme.name}={credential}"
            if "cookie" in self.headers:
                value = f"{self.headers['cookie']}; {value}"
        return self._replace(headers={**self.headers, name: value})


def secrets(scheme: Scheme, credential: str) -> list[str]:
    """Return texts that an answer must not contain: the credential in each form it may come back in."""
    parts = [credential]
    if scheme.kind == "basic":
        parts = [_encoded(credential), credential, credential.partition(":")[2]]
    forms = [form for part in parts for form in (part, _json(part)[1:-1], quote(part, safe=""))]
    forms += [form.replace("/", r"\/") for form in forms]
    # A shorter one is no secret, and may stand in any text.
    return [form for form in dict.fromkeys(forms) if len(form) >= _SECRET]


def _encoded(credential: str) -> str:
    """Encode a credential as `basic` has it."""
    return base64.b64encode(credential.encode()).decode()


def request_problems(operation: Operation, parameters: Any, body: Any) -> list[Problem]:
    """Return the problems of arguments that the operation refuses."""
    given = {"parameters": parameters} | ({} if body is None else {"body": body})
    found = list(violations(operation.schema, given))
    if not found:
        found += _lost_ways(operation, parameters)
    return found


def _lost_ways(operation: Operation, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of values that would make another path, as a server may decode them."""
    for parameter in operation.parameters:
        if parameter.place == "path":
            written = _joined(parameter, _given(parameter, given))
            if not written or not {".", ".."}.isdisjoint(_STEPS.split(written)):
                yield Problem(
                    f"/parameters/{escape(parameter.key)}",
                    "it is a part of the path, and neither empty nor `.` or `..` between slashes",
                )
    if not {".", ".."}.isdisjoint(_path(operation, given).split("/")):
        yield Problem("/parameters", "together they make `.` or `..` a part of the path")


def request(operation: Operation, parameters: Mapping[str, Any], body: Any) -> OperationRequest:
    """Build the request from arguments without problems."""
    query, cookies, headers = Pairs(), Pairs(), dict[str, str]()
    for parameter in operation.parameters:
        if parameter.key not in parameters:
            continue
        value = _given(parameter, parameters)
        if value is None and not parameter.is_json:
            continue  # no style has a way to write it: it is left out
        if parameter.place == "header":
            headers[parameter.name.lower()] = _joined(parameter, value)
        elif parameter.place != "path":
            (query if parameter.place == "query" else cookies).extend(_pairs(parameter, value))
    if cookies:
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in cookies)
    asked = _query(query)
    headers["accept"] = "application/json"
    written = b""
    if body is not None:
        headers["content-type"] = operation.body_type
        written = _body(operation, body)
    url = f"{operation.server}{_path(operation, parameters)}{'?' if asked else ''}{asked}"
    return OperationRequest(operation.method, url, headers, written)


def _path(operation: Operation, given: Mapping[str, Any]) -> str:
    path = quote(operation.path, safe=_IN_PATHS)
    for parameter in operation.parameters:
        if parameter.place == "path":
            slot = quote(f"{{{parameter.name}}}", safe=_IN_PATHS)
            path = path.replace(slot, _expanded(parameter, _given(parameter, given)))
    return path


def _body(operation: Operation, body: Any) -> bytes:
    kind = operation.body_type
    if is_json(kind):
        return msgspec.json.encode(body)
    if kind.startswith("text/plain"):
        return _text(body).encode(errors="replace")
    pairs = Pairs()
    for name, value in body.items() if isinstance(body, dict) else ():
        if value is None:
            continue
        if name in operation.encoding:
            style, is_exploded = operation.encoding[name]
            pairs += _styled(name, _without_null(value), style, is_exploded)
        else:
            kept = [one for one in value if one is not None] if isinstance(value, list) else value
            pairs += _repeated(name, kept)
    return _query(pairs).encode()


def _query(pairs: Pairs) -> str:
    return "&".join(f"{name}={value}" for name, value in pairs)


def _given(parameter: Parameter, given: Mapping[str, Any]) -> Any:
    value = given[parameter.key]
    return value if parameter.is_json else _without_null(value)


def _without_null(value: Any) -> Any:
    """Return lists and objects without the nulls in them, which no style has a way to write."""
    if isinstance(value, list):
        return [_without_null(one) for one in value if one is not None]
    if isinstance(value, dict):
        return {name: _without_null(one) for name, one in value.items() if one is not None}
    return value


def _joined(parameter: Parameter, value: Any) -> str:
    """Return one text, as in `simple`, without encoding."""
    if value is None and not parameter.is_json:
        return ""
    if parameter.is_json:
        return _json(value)
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        between = "=" if parameter.is_exploded else ","
        return ",".join(f"{name}{between}{_text(one)}" for name, one in value.items())
    return _text(value)


def _expanded(parameter: Parameter, value: Any) -> str:
    """Return a part of a path: `simple`, `label` or `matrix`."""
    if parameter.is_json:
        return _encoded_text(_json(value))
    first, name = {"label": ".", "matrix": ";"}.get(parameter.style, ""), _encoded_text(parameter.name)
    between = first if first and parameter.is_exploded else ","
    own = f"{name}=" if parameter.style == "matrix" else ""
    if isinstance(value, list):
        own_each = own if parameter.is_exploded else ""
        parts = [f"{own_each}{_encoded_text(_text(one))}" for one in value]
    elif isinstance(value, dict):
        sign = "=" if parameter.is_exploded else ","
        parts = [f"{_encoded_text(key)}{sign}{_encoded_text(_text(one))}" for key, one in value.items()]
    else:
        return f"{first}{own}{_encoded_text(_text(value))}"
    return f"{first}{'' if parameter.is_exploded else own}{between.join(parts)}"


def _pairs(parameter: Parameter, value: Any) -> Pairs:
    """Return names and values of a query or of cookies."""
    if parameter.is_json:
        return [(_encoded_text(parameter.name), _encoded_text(_json(value)))]
    return _styled(parameter.name, value, parameter.style, parameter.is_exploded)


def _styled(name: str, value: Any, style: str, is_exploded: bool) -> Pairs:
    if not isinstance(value, list | dict):
        return _repeated(name, value)
    if style == "deepObject":
        return _deep(name, value)
    if is_exploded and isinstance(value, dict):
        return [(_encoded_text(key), _encoded_text(_text(one))) for key, one in value.items()]
    if is_exploded:
        return _repeated(name, value)
    flat = value if isinstance(value, list) else [one for pair in value.items() for one in pair]
    between = _BETWEEN.get(style, ",")
    return [(_encoded_text(name), between.join(_encoded_text(_text(one)) for one in flat))] if flat else []


def _deep(name: str, value: Any, *, is_first: bool = True) -> Pairs:
    """Return the pairs `name[key]=…`, as deep as the value is. Inner lists have numbers."""
    if isinstance(value, dict):
        return [pair for key, one in value.items() for pair in _deep(f"{name}[{key}]", one, is_first=False)]
    if isinstance(value, list) and (is_first or any(isinstance(one, list | dict) for one in value)):
        return [
            pair for index, one in enumerate(value) for pair in _deep(f"{name}[{index}]", one, is_first=False)
        ]
    return _repeated(name, value)


def _repeated(name: str, value: Any) -> Pairs:
    values = value if isinstance(value, list) else [value]
    return [(_encoded_text(name), _encoded_text(_text(one))) for one in values]


def _encoded_text(text: str) -> str:
    return quote(text, safe="")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
