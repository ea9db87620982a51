"""A request from the arguments of an operation: all that is wrong with them at once, or where each of them stands.

Pure; standard/openapi.py sends it.
"""

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

_BETWEEN: Final[Mapping[str, str]] = {"spaceDelimited": " ", "pipeDelimited": "|"}
_IN_PATHS: Final = "/:@!$&'()*+,;=-._~%{}"  # of a description's own text
_SECRET: Final = 6
_STEPS: Final = re.compile(r"[/\\]")

Pairs = list[tuple[str, str]]


class Request(NamedTuple):
    method: str
    url: str
    headers: dict[str, str]
    body: bytes

    def with_credential(self, scheme: Scheme, credential: str) -> Request:
        """The credential stands where the description wants it, whatever the arguments have put there."""
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
    """What an answer must not have in it: the credential in each form in which a service may repeat it."""
    parts = [credential]
    if scheme.kind == "basic":
        parts = [_encoded(credential), credential, credential.partition(":")[2]]
    forms = [form for part in parts for form in (part, _json(part)[1:-1], quote(part, safe=""))]
    forms += [form.replace("/", r"\/") for form in forms]
    # A shorter one is no secret, and may stand in any text.
    return [form for form in dict.fromkeys(forms) if len(form) >= _SECRET]


def _encoded(credential: str) -> str:
    """As `basic` has it."""
    return base64.b64encode(credential.encode()).decode()


def problems(operation: Operation, parameters: Any, body: Any) -> list[Problem]:
    """All that the operation does not take."""
    given = {"parameters": parameters} | ({} if body is None else {"body": body})
    found = list(violations(operation.schema, given))
    if not found:
        found += _lost_ways(operation, parameters)
    return found


def _lost_ways(operation: Operation, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Values that would make another path of the path. A server may decode what is encoded here."""
    for parameter in operation.parameters:
        if parameter.place == "path":
            written = _joined(parameter, given[parameter.key])
            if not written or not {".", ".."}.isdisjoint(_STEPS.split(written)):
                yield Problem(
                    f"/parameters/{escape(parameter.key)}",
                    "it is a part of the path, and neither empty nor `.` or `..` between slashes",
                )
    if not {".", ".."}.isdisjoint(_path(operation, given).split("/")):
        yield Problem("/parameters", "together they make `.` or `..` a part of the path")


def request(operation: Operation, parameters: Mapping[str, Any], body: Any) -> Request:
    """From arguments without problems."""
    query, cookies, headers = Pairs(), Pairs(), dict[str, str]()
    for parameter in operation.parameters:
        if parameter.key not in parameters:
            continue
        value = parameters[parameter.key]
        if parameter.place == "header":
            headers[parameter.name.lower()] = _joined(parameter, value)
        elif parameter.place != "path":
            (query if parameter.place == "query" else cookies).extend(_pairs(parameter, value))
    if cookies:
        headers["cookie"] = "; ".join(f"{quote(name)}={quote(value)}" for name, value in cookies)
    asked = urlencode(query, quote_via=quote)
    headers["accept"] = "application/json"
    written = b""
    if body is not None:
        headers["content-type"] = operation.body_type
        written = _body(operation.body_type, body)
    url = f"{operation.server}{_path(operation, parameters)}{'?' if asked else ''}{asked}"
    return Request(operation.method, url, headers, written)


def _path(operation: Operation, given: Mapping[str, Any]) -> str:
    path = quote(operation.path, safe=_IN_PATHS)
    for parameter in operation.parameters:
        if parameter.place == "path":
            slot = quote(f"{{{parameter.name}}}", safe=_IN_PATHS)
            path = path.replace(slot, quote(_joined(parameter, given[parameter.key]), safe=""))
    return path


def _body(kind: str, body: Any) -> bytes:
    if is_json(kind):
        return msgspec.json.encode(body)
    if kind.startswith("text/plain"):
        return _text(body).encode(errors="replace")
    fields = body if isinstance(body, dict) else {}
    return urlencode([pair for name, value in fields.items() for pair in _repeated(name, value)]).encode()


def _joined(parameter: Parameter, value: Any) -> str:
    """One text, as in `simple`."""
    if parameter.is_json:
        return _json(value)
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        between = "=" if parameter.is_exploded else ","
        return ",".join(f"{name}{between}{_text(one)}" for name, one in value.items())
    return _text(value)


def _pairs(parameter: Parameter, value: Any) -> Pairs:
    """Names and values, as in `form`."""
    name = parameter.name
    if parameter.is_json or not isinstance(value, list | dict):
        return [(name, _json(value) if parameter.is_json else _text(value))]
    if parameter.style == "deepObject" and isinstance(value, dict):
        return [pair for key, one in value.items() for pair in _repeated(f"{name}[{key}]", one)]
    if parameter.is_exploded and isinstance(value, dict):
        return [(key, _text(one)) for key, one in value.items()]
    if parameter.is_exploded:
        return _repeated(name, value)
    flat = value if isinstance(value, list) else [one for pair in value.items() for one in pair]
    return [(name, _BETWEEN.get(parameter.style, ",").join(map(_text, flat)))]


def _repeated(name: str, value: Any) -> Pairs:
    return [(name, _text(one)) for one in (value if isinstance(value, list) else [value])]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
