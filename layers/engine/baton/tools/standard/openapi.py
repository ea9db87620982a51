"""`std.openapi`: an operation of an API that the deployment names, by the operation's id.

What a description says and what a request of it looks like is in tools/openapi/.
How bytes travel, and where to, is the adapter's; what an answer means to a step is that of `std.http`.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from pydantic import BaseModel, Field

from baton.core.effects.keys import GRANTED_LIST_KEY
from baton.core.effects.operations import NOT_LISTED, Operations, operation_refusal
from baton.core.tracing import is_chosen_by_model
from baton.ports import StepContext, StepFailure
from baton.ports.outside import HttpAnswer
from baton.tools.define import Registry
from baton.tools.openapi.description import NamedApi
from baton.tools.standard.http import (
    Answered,
    check_status,
    follow_redirects,
    headers_of,
    host_of,
    response_output,
)
from baton.tools.standard.kit import SAFE, Services, exchange, read_json, redacted, standard_tool

if TYPE_CHECKING:
    from baton.tools.openapi.description import Description, Operation
    from baton.tools.openapi.requests import OperationRequest

_UNAUTHORIZED: Final = 401
_MOST_PROBLEMS: Final = 30
_MOST_TEXT: Final = 2_000
_MOST_SCHEMA: Final = 16_384
"""Characters of an operation's text, and bytes of its schema, that a model is told."""

Api = Annotated[str, Field(description="Name of an API of this deployment.")]
OperationId = Annotated[str, Field(max_length=300, description="`operationId` of the API's description.")]
Listed = Annotated[
    dict[str, list[str]] | None,
    Field(
        description="The operations that may be called, by API: what the arguments name has to be among them.",
        json_schema_extra={GRANTED_LIST_KEY: True},
    ),
]
Parameters = Annotated[
    dict[str, Any],
    Field(
        description="By their names: those of path, query, headers and cookies. One name in two places: `query.id`, `path.id`."
    ),
]
Body = Annotated[Any, Field(description="Body of the request, where the operation takes one.")]


def declare(registry: Registry, services: Services) -> None:
    described = _Descriptions(services)

    @standard_tool("std.openapi", registry=registry, domain="external_api")
    async def openapi(
        api: Api,
        operation: OperationId,
        context: StepContext,
        parameters: Parameters | None = None,
        body: Body = None,
        operations: Listed = None,
    ) -> Answered:
        """Call an operation of an API by its id, and give the answer.

        Arguments are checked by the API's description first, and all that is wrong with them is said.
        Operations other than GET and HEAD carry `Idempotency-Key`, the same for every attempt of the step. A
        status of 400 and above is the step's failure. No redirect is followed.
        """
        _check(api, operation, operations, context)
        named = _named(services, api)
        found = await described.operation(named, operation, context)
        asked = await services.stored(_request, named, operation, found, parameters or {}, body)
        return await _answer(services, context, named, found, asked)

    @standard_tool("std.describe_operations", registry=registry, effect="pure", domain="external_api")
    async def describe_operations(context: StepContext, operations: Listed = None) -> list[OperationText]:
        """Give the text of operations and the schema of their arguments, by the descriptions of their APIs.

        An operation that its description does not have, or whose description cannot be used, is left out.
        """
        return [
            OperationText(api=api, operation=name, text=one.about[:_MOST_TEXT], parameters=dict(one.schema))
            for api, ids in (operations or {}).items()
            for name in ids
            if (one := await described.known(services.apis.get(api), name, context)) is not None
            and len(msgspec.json.encode(one.schema)) <= _MOST_SCHEMA
        ]


class OperationText(BaseModel):
    """The description of an operation."""

    api: str
    operation: str
    text: str
    parameters: dict[str, Any]


def _check(api: str, operation: str, listed: Operations | None, context: StepContext) -> None:
    """Raise `StepFailure` for an operation that is not listed. A call that a model chooses needs a list."""
    if listed is None:
        if not is_chosen_by_model(context.item):
            return
        listed = {}
    if why := operation_refusal(listed, api, operation):
        raise StepFailure(NOT_LISTED, why, happened=False)


def _named(services: Services, name: str) -> NamedApi:
    """Return the API with this name. Raises `StepFailure`."""
    found = services.apis.get(name)
    if found is None:
        known = ", ".join(f"`{one}`" for one in services.apis.names())
        what = f"there is {known}" if known else "it names none"
        raise StepFailure(
            "input_invalid",
            f"`OpenApis` of the deployment names no API `{name[:40]}`: {what}",
            happened=False,
        )
    return found


class _Descriptions:
    """Descriptions of a process: each is fetched by the first call that needs it, and kept."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, Description] = {}
        self._fetching: dict[str, asyncio.Lock] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def operation(self, api: NamedApi, name: str, context: StepContext) -> Operation:
        """Return the operation. Raises `StepFailure`."""
        async with self._lock(api.name):
            if api.name not in self._known:
                self._known[api.name] = await self._fetched(api, context)
        return await self._services.stored(_operation, api, self._known[api.name], name)

    async def known(self, api: NamedApi | None, name: str, context: StepContext) -> Operation | None:
        """Return the operation; None for one that cannot be called."""
        try:
            return None if api is None else await self.operation(api, name, context)
        except StepFailure as failure:
            if failure.code in ("input_invalid", "description_invalid"):
                return None
            raise

    async def _fetched(self, api: NamedApi, context: StepContext) -> Description:
        headers = {"accept": "application/json"}
        answer = await follow_redirects(self._services, context, "GET", api.url, headers, b"", "", None)
        return await self._services.stored(_description, api, answer.body)

    def _lock(self, name: str) -> asyncio.Lock:
        """Return the lock of this event loop: steps that begin at once fetch a description once."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._fetching = loop, {}
        return self._fetching.setdefault(name, asyncio.Lock())


def _description(api: NamedApi, data: bytes) -> Description:
    """Parse the description. Raises `StepFailure`."""
    from baton.tools.openapi.description import Description, DescriptionError

    found = hashlib.sha256(data).hexdigest()
    if found != api.sha256:
        raise _unusable(
            api,
            f"{host_of(api.url)} gives another one than `OpenApis` of the deployment pins. See what has changed in it; if it is to "
            f"be used, write `#sha256:{found}`",
        )
    try:
        return Description(api, read_json(data))
    except DescriptionError as error:
        raise _unusable(api, str(error)) from error


def _operation(api: NamedApi, described: Description, name: str) -> Operation:
    """Return the operation of a description. Raises `StepFailure`."""
    from baton.tools.openapi.description import DescriptionError

    try:
        found = described.operation(name)
    except DescriptionError as error:
        raise _unusable(api, str(error), name) from error
    if found is None:
        raise StepFailure("input_invalid", f"`{api.name}`: {described.hint(name)}", happened=False)
    return found


def _unusable(api: NamedApi, why: str, operation: str = "") -> StepFailure:
    of = f" of `{operation}`" if operation else ""
    return StepFailure(
        "description_invalid", f"the description{of} of the API `{api.name}`: {why}", happened=False
    )


def _request(
    api: NamedApi, name: str, operation: Operation, parameters: dict[str, Any], body: Any
) -> OperationRequest:
    """Return the request. Raises `StepFailure` with all problems of the arguments."""
    from baton.tools.openapi.requests import request, request_problems

    if wrong := request_problems(operation, parameters, body):
        told = "; ".join(f"{problem.path}: {problem.message}" for problem in wrong[:_MOST_PROBLEMS])
        more = f"; and {len(wrong) - _MOST_PROBLEMS} more" if len(wrong) > _MOST_PROBLEMS else ""
        raise StepFailure("input_invalid", f"`{name}` of `{api.name}`: {told}{more}", happened=False)
    return request(operation, parameters, body)


async def _answer(
    services: Services, context: StepContext, api: NamedApi, operation: Operation, asked: OperationRequest
) -> Answered:
    """Return the result. Raises `StepFailure`. Neither has the credential."""
    from baton.tools.openapi.requests import secrets

    credential = await _credential(services, api, operation)
    answer = await _sent(services, context, operation, asked, credential)
    if answer.status == _UNAUTHORIZED and credential:
        # It may have been replaced since it was read.
        renewed = await _credential(services, api, operation, is_refused=True)
        if renewed != credential:
            credential = renewed
            answer = await _sent(services, context, operation, asked, credential)
    if answer.status == _UNAUTHORIZED and operation.scheme is not None:
        # Without what it says: services quote the credential there.
        what = f"{host_of(asked.url)} answered 401: it does not accept the credential of the API `{api.name}`"
        raise StepFailure("unauthorized", what, status=answer.status)
    if operation.scheme is not None:
        answer = redacted(answer, secrets(operation.scheme, credential))
    check_status(asked.method, asked.url, answer)
    return response_output(asked.url, answer)


async def _credential(
    services: Services, api: NamedApi, operation: Operation, *, is_refused: bool = False
) -> str:
    if operation.scheme is None:
        return ""
    return await services.credentials.of(
        api.name, is_optional=operation.is_scheme_optional, is_refused=is_refused
    )


async def _sent(
    services: Services, context: StepContext, operation: Operation, asked: OperationRequest, credential: str
) -> HttpAnswer:
    if credential and operation.scheme is not None:
        asked = asked.with_credential(operation.scheme, credential)
    key = "" if asked.method in SAFE else context.idempotency_key
    return await exchange(
        services,
        context,
        asked.method,
        asked.url,
        headers=headers_of(asked.headers),
        body=asked.body,
        key=key,
    )
