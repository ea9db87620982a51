"""Lambda's Invoke operation over HTTP, for boto3 clients inside the functions (AWS_ENDPOINT_URL_LAMBDA).

Only Invoke: anything else is a 404 that says so.
"""

from __future__ import annotations

import json
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from baton.local.functions.lambdas import Lambdas
from baton.local.functions.local_key import FILE, is_signed_by
from baton.local.functions.pool import Pool, Throttled
from baton.local.processes.problems import LocalRunError
from baton.local.processes.visitors import is_simple

_SYNC_LIMIT = 6 * 1024 * 1024
_EVENT_LIMIT = 1024 * 1024


def routes(lambdas: Lambdas, key: str) -> list[Route]:
    """key: the access key id of those who may invoke."""

    async def invoke(request: Request) -> Response:
        headers = request.headers
        if headers.get("origin") or is_simple(headers.get("content-type", "")):
            return _refuse(403, "AccessDeniedException", "no web page may invoke a function")
        if not is_signed_by(headers.get("authorization", ""), key):
            why = f"sign with the access key id in `.baton/{FILE}`: AWS_ACCESS_KEY_ID=$(cat .baton/{FILE})"
            return _refuse(403, "UnrecognizedClientException", why)
        try:
            pool = lambdas.find(unquote(request.path_params["name"]))
        except LocalRunError as error:
            return _refuse(404, "ResourceNotFoundException", str(error))
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        body = await request.body() or b"{}"
        limit = _EVENT_LIMIT if kind == "Event" else _SYNC_LIMIT
        if len(body) > limit:
            return _refuse(413, "RequestTooLargeException", f"{len(body)} bytes; the limit is {limit}")
        try:
            json.loads(body)
        except ValueError as error:
            message = f"Could not parse request body into json: {error}"
            return _refuse(400, "InvalidRequestContentException", message)
        if kind == "DryRun":
            return Response(status_code=204)
        if kind == "Event":
            request_id = lambdas.submit(pool.function.logical_id, body)
            return Response(status_code=202, headers={"x-amzn-RequestId": request_id})
        return await _run(pool, body)

    return [Route("/2015-03-31/functions/{name}/invocations", invoke, methods=["POST"])]


async def _run(pool: Pool, body: bytes) -> Response:
    try:
        result = await pool.invoke(body, "invoke")
    except Throttled:
        return _refuse(429, "TooManyRequestsException", "Rate Exceeded.")
    headers = {"x-amzn-RequestId": result.request_id, "X-Amz-Executed-Version": "$LATEST"}
    if not result.ok:
        headers["X-Amz-Function-Error"] = "Unhandled"
    return Response(result.payload, media_type="application/json", headers=headers)


def _refuse(status: int, kind: str, message: str) -> Response:
    body = json.dumps({"Type": "User", "Message": message, "message": message})
    return Response(body, status, {"x-amzn-ErrorType": kind}, media_type="application/json")
