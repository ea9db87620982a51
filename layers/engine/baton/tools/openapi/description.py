"""Operations of OpenAPI descriptions 3.0 and 3.1. Only inner references are followed, all is bounded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from baton.core.expressions import nearest, with_hint

MOST_PARTS: Final = 20_000
MOST_DEPTH: Final = 100
_MOST_REFERENCES: Final = 20  # one behind the other

_ONE: Final = frozenset((
    "additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties",
))  # fmt: skip
_LISTS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED: Final = frozenset(("properties", "patternProperties", "dependentSchemas"))
_PLAIN: Final = frozenset((
    "type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties",
    "maxProperties", "dependentRequired",
))  # fmt: skip


class DescriptionError(Exception):
    """Error for a description that cannot be used; the message gives the reason."""


def resolve_references(document: Any, node: Any) -> dict[str, Any]:
    """Return an object, behind all references that stand in its place. Raises `DescriptionError`."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(node, dict):
            raise DescriptionError("where an object is expected, there is none")
        if "$ref" not in node:
            return node
        node = target(document, node["$ref"])
    raise DescriptionError("its references go round in circles")


def target(document: Any, reference: Any) -> Any:
    """Return the target of a reference. Raises `DescriptionError` for one that leads out of the document."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise DescriptionError(
            f"it refers to `{str(reference)[:100]}`: nothing but references inside of it (`#/…`) is followed; put it into one document"
        )
    here = document
    for token in unquote(reference[2:]).split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, dict) or key not in here:
            raise DescriptionError(f"there is no `{reference[:100]}` in it")
        here = here[key]
    return here


class Schemas:
    """Schemas of one operation: referenced ones become definitions. Raises `DescriptionError`."""

    def __init__(self, document: Any, *, is_3_0: bool) -> None:
        self._document, self._is_3_0 = document, is_3_0
        self._names: dict[str, str] = {}
        self._pending: list[str] = []
        self._left = MOST_PARTS

    def definitions(self) -> dict[str, Any]:
        """Return the definitions of all referenced schemas; call it last."""
        made: dict[str, Any] = {}
        while self._pending:
            reference = self._pending.pop()
            made[self._names[reference]] = self.of(target(self._document, reference))
        return made

    def of(self, schema: Any, depth: int = 0) -> Any:
        """Return a schema with its references replaced by definitions. Raises `DescriptionError`."""
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            raise DescriptionError("the schemas of this operation are too large, or nested too deeply")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise DescriptionError("where a schema is expected, there is none")
        made: dict[str, Any] = {}
        for word, value in schema.items():
            if word in _ONE:
                made[word] = self.of(value, depth + 1)
            elif word in _LISTS and isinstance(value, list):
                made[word] = [self.of(one, depth + 1) for one in value]
            elif word in _NAMED and isinstance(value, dict):
                made[word] = {name: self.of(one, depth + 1) for name, one in value.items()}
            elif word in _PLAIN:
                made[word] = value
        if "$ref" in schema:
            made["$ref"] = f"#/$defs/{self._name(str(schema['$ref']))}"
        if isinstance(schema.get("required"), list):
            made["required"] = _asked(schema)
        return _modern(made, schema) if self._is_3_0 else made

    def _name(self, reference: str) -> str:
        if reference not in self._names:
            self._names[reference] = f"d{len(self._names)}"
            self._pending.append(reference)
        return self._names[reference]


def _asked(schema: Mapping[str, Any]) -> list[Any]:
    """Return the required properties that are not for answers only."""
    properties = schema.get("properties")
    own = properties if isinstance(properties, dict) else {}
    return [
        name
        for name in schema["required"]
        if not (isinstance(own.get(name), dict) and own[name].get("readOnly") is True)
    ]


def _modern(made: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Translate keywords of OpenAPI 3.0 to those of JSON Schema."""
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(made.get(word), bool) and made.pop(word) and bound in made:
            made[word] = made.pop(bound)
    if schema.get("nullable") is True:
        return {"anyOf": [made, {"type": "null"}]}
    return made


class NamedApi(NamedTuple):
    """API with a name. `server` has no slash at its end, and is empty if the description names it."""

    name: str
    url: str
    sha256: str
    server: str


class Apis:
    """APIs of a deployment."""

    def __init__(self, text: str = "") -> None:
        """Read the APIs of a setting, whose text matches its pattern. Raises `ValueError`."""
        self._named: Mapping[str, NamedApi] = {api.name: api for api in map(_read, text.split())}
        if len(self._named) != len(text.split()):
            raise ValueError("each API is named once")

    def get(self, name: str) -> NamedApi | None:
        return self._named.get(name)

    def names(self) -> list[str]:
        return sorted(self._named)


def _read(entry: str) -> NamedApi:
    name, _, rest = entry.partition("=")
    url, _, pin = rest.partition("#sha256:")
    sha256, _, server = pin.partition("@")
    return NamedApi(name, url, sha256, server.rstrip("/"))


METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
# How a value is written, by where it stands. The first of each is meant where none is said.
_STYLES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
# OpenAPI has the first three say nothing; the last one is the step's own.
_NOT_ARGUMENTS: Final = frozenset({"accept", "content-type", "authorization"})
_FORM: Final = "application/x-www-form-urlencoded"
_NAMED_IN_PATH: Final = re.compile(r"\{([^{}]*)\}")
_SHOWN: Final = 20


class Parameter(NamedTuple):
    """`key` is what the argument is called: the name, or `query.id` where the path has an `id`, too."""

    key: str
    name: str
    place: str
    style: str
    is_exploded: bool
    is_json: bool


class Scheme(NamedTuple):
    """Place of a credential: `Authorization`, or the `name` of a header, parameter or cookie."""

    kind: str
    name: str = ""


class Operation(NamedTuple):
    """`schema` is that of `{"parameters": {…}, "body": …}`; `body_type` is empty where there is no body.

    `encoding`: by the field of a form, its style and whether it is exploded. `about`: its text for people.
    """

    method: str
    path: str
    server: str
    parameters: tuple[Parameter, ...]
    body_type: str
    schema: Mapping[str, Any]
    scheme: Scheme | None
    is_scheme_optional: bool
    encoding: Mapping[str, tuple[str, bool]]
    about: str = ""


class Description:
    """Parsed description. Raises `DescriptionError`, whose message explains the problem."""

    def __init__(self, api: NamedApi, document: Any) -> None:
        version = document.get("openapi") if isinstance(document, dict) else None
        if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
            raise DescriptionError("it is not OpenAPI 3.0 or 3.1 as JSON, with `openapi` at its top")
        self._api, self._document, self._version = api, document, version
        self._known: dict[str, Operation] = {}
        self._places = dict(self._operations())

    def operation(self, name: str) -> Operation | None:
        if name not in self._places:
            return None
        if name not in self._known:
            self._known[name] = self._read(*self._places[name])
        return self._known[name]

    def hint(self, name: str) -> str:
        """Return the message about an unknown operation, with the nearest name or a list of names."""
        shown = sorted(self._places)[:_SHOWN]
        more = len(self._places) - len(shown)
        has = f"it has {', '.join(f'`{one}`' for one in shown)}{f' and {more} more' if more else ''}"
        return with_hint(f"there is no operation `{name[:100]}`", nearest(name, self._places) or has)

    def _operations(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield method and path of each operation, by its id; by `GET /orders/{id}` of one that has none."""
        for path, item in _objects(self._document.get("paths")):
            for method in METHODS:
                one = resolve_references(self._document, item).get(method)
                if isinstance(one, dict):
                    own = one.get("operationId")
                    name = own if isinstance(own, str) and own else f"{method.upper()} {path}"
                    yield name, (method, path)

    def _read(self, method: str, path: str) -> Operation:
        item = resolve_references(self._document, self._document["paths"][path])
        one = item[method]
        schemas = Schemas(self._document, is_3_0=self._version.startswith("3.0"))
        parameters, schema = self._parameters(item, one, schemas)
        names = _NAMED_IN_PATH.findall(path)
        missing = set(names) - {parameter.name for parameter in parameters if parameter.place == "path"}
        if missing or not path.startswith("/"):
            raise DescriptionError(
                f"the path `{path[:100]}` has names that are no parameters, or no `/` first"
            )
        properties: dict[str, Any] = {"parameters": schema}
        needed = ["parameters"]
        body = resolve_references(self._document, one.get("requestBody", {}))
        body_type, body_schema, encoding = _body(body)
        if body_type:
            properties["body"] = schemas.of(body_schema)
            needed += ["body"] * (body.get("required") is True)
        whole = {"type": "object", "properties": properties, "required": needed}
        scheme, is_optional = self._security(one)
        return Operation(
            method=method.upper(),
            path=path,
            server=self._server(item, one),
            parameters=parameters,
            body_type=body_type,
            schema={**whole, "additionalProperties": False, "$defs": schemas.definitions()},
            scheme=scheme,
            is_scheme_optional=is_optional,
            encoding=encoding,
            about="\n".join(
                text for key in ("summary", "description") if isinstance(text := one.get(key), str) and text
            ),
        )

    def _parameters(
        self, item: Mapping[str, Any], one: Mapping[str, Any], schemas: Schemas
    ) -> tuple[tuple[Parameter, ...], dict[str, Any]]:
        """Return the parameters, the operation's before the path's, and their arguments' schema."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for given in (*_list(item.get("parameters")), *_list(one.get("parameters"))):
            said = resolve_references(self._document, given)
            name, place = said.get("name"), said.get("in")
            if not isinstance(name, str) or not isinstance(place, str) or place not in _STYLES:
                raise DescriptionError("a parameter has no `name`, or no `in` that OpenAPI knows")
            if place != "header" or name.lower() not in _NOT_ARGUMENTS:
                found[name, place] = said
        often = Counter(name for name, _ in found)
        parameters, properties, required = [], {}, []
        for (name, place), of in found.items():
            key = name if often[name] == 1 else f"{place}.{name}"
            parameter, schema = _parameter(key, name, place, of)
            parameters.append(parameter)
            properties[key] = schemas.of(schema)
            is_own = name.lower() == "idempotency-key"  # the step has one
            if place == "path" or (of.get("required") is True and not is_own):
                required.append(key)
        whole = {"type": "object", "properties": properties, "required": required}
        return tuple(parameters), whole | {"additionalProperties": False}

    def _server(self, item: Mapping[str, Any], one: Mapping[str, Any]) -> str:
        """Return the server of the requests: the deployment's choice before the description's."""
        if self._api.server:
            return self._api.server
        said = next((place["servers"] for place in (one, item, self._document) if place.get("servers")), None)
        server = _object(next(iter(_list(said)), None))
        url = str(server.get("url", "/"))
        for name, variable in _objects(server.get("variables")):
            url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
        try:
            there = urljoin(self._api.url, url)
            same = origin(there) == origin(self._api.url)
        except ValueError:
            there, same = "", False
        if not same:
            raise DescriptionError(
                f"its server is {_host(there)}, which is elsewhere than the description: if requests are to go there, "
                f"name it in `OpenApis`, behind the hash: `{self._api.name}=…#sha256:…@https://…`"
            )
        return there.partition("#")[0].partition("?")[0].rstrip("/")

    def _security(self, one: Mapping[str, Any]) -> tuple[Scheme | None, bool]:
        """Return the first scheme of a single credential, and true if none is needed."""
        wanted = _list(one.get("security", self._document.get("security")))
        names = [list(_object(alternative)) for alternative in wanted]
        if not any(names):
            return None, True
        known = _object(_object(self._document.get("components")).get("securitySchemes"))
        for alternative in names:
            if len(alternative) == 1 and alternative[0] in known:
                scheme = _scheme(resolve_references(self._document, known[alternative[0]]))
                if scheme is not None:
                    return scheme, [] in names
        if [] in names:
            return None, True
        raise DescriptionError(
            "the operation needs credentials of a kind that cannot be given: one of `apiKey`, and `bearer` or `basic` of HTTP, can"
        )


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port. Raises `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("no address of a server")
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme]


def _host(url: str) -> str:
    try:
        return f"`{origin(url)[1][:100]}`"
    except ValueError:
        return "no address"


def _parameter(key: str, name: str, place: str, said: Mapping[str, Any]) -> tuple[Parameter, Any]:
    content = _objects(said.get("content"))
    for kind, media in content:
        if not is_json(kind):
            raise DescriptionError(f"the parameter `{name[:100]}` is of the type `{kind[:60]}`, and no JSON")
        return Parameter(key, name, place, "content", False, True), media.get("schema", {})
    style = said.get("style", _STYLES[place][0])
    if style not in _STYLES[place]:
        raise DescriptionError(
            f"the parameter `{name[:100]}` has the style `{str(style)[:60]}`, which is not known here"
        )
    is_exploded = said.get("explode", style == "form") is True
    return Parameter(key, name, place, style, is_exploded, False), said.get("schema", {})


def _body(said: Mapping[str, Any]) -> tuple[str, Any, dict[str, tuple[str, bool]]]:
    """Return the type of a body, JSON if there is a choice, its schema, and the form's styles."""
    kinds = dict(_objects(said.get("content")))
    if not kinds:
        return "", {}, {}
    for kind, media in kinds.items():
        if is_json(kind) or kind == "*/*":
            return "application/json" if "*" in kind else kind, media.get("schema", {}), {}
    for kind, media in kinds.items():
        if kind.partition(";")[0] in (_FORM, "text/plain"):
            return kind, media.get("schema", {}), dict(_encodings(media))
    raise DescriptionError(
        f"a body is of the type `{next(iter(kinds))[:60]}`; JSON, forms and plain text can be sent"
    )


def _encodings(media: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Yield the encodings that name a style; without one, a field is text, a list of texts, or JSON."""
    for name, one in _objects(media.get("encoding")):
        if "style" in one or "explode" in one:
            style = one.get("style", "form")
            if style not in _STYLES["query"]:
                raise DescriptionError(f"the field `{name[:100]}` has a style which is not known here")
            yield name, (style, one.get("explode", style == "form") is True)


def is_json(kind: str) -> bool:
    """Return true if a media type is JSON."""
    plain = kind.partition(";")[0].strip().lower()
    return plain in ("application/json", "application/*") or plain.endswith("+json")


def _scheme(said: Mapping[str, Any]) -> Scheme | None:
    kind, http = said.get("type"), str(said.get("scheme", "")).lower()
    if kind in ("oauth2", "openIdConnect"):
        return Scheme("bearer")
    if kind == "http" and http in ("bearer", "basic"):
        return Scheme(http)
    if (
        kind == "apiKey"
        and said.get("in") in ("header", "query", "cookie")
        and isinstance(said.get("name"), str)
    ):
        return Scheme(said["in"], said["name"])
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(name, one) for name, one in _object(value).items() if isinstance(one, dict)]
