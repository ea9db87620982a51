"""Outside names of failures: HTTP statuses, exceptions, codes of services.

Each leads to one of Baton's codes.
Libraries are known by the text of their names and never imported. The meaning of a code is in codes.py, the
names of a failure are found in evidence.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from baton.core.failures.codes import ALIASES, CLASSES, CODES, TOOL_DEFECT, UNKNOWN, class_of, is_bug

STATUSES: Mapping[int, str] = {
    301: "resource_moved",
    308: "resource_moved",
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    422: "invalid_input",
    425: "service_unavailable",
    429: "rate_limited",
    502: "service_unavailable",
    503: "service_unavailable",
    504: "service_unavailable",
}
OTHER_4XX, OTHER_5XX = "client_error", "server_error"


def _each(**names: str) -> dict[str, str]:
    """Return a mapping of names to codes from `code="name name"`."""
    return {name: code for code, listed in names.items() for name in listed.split()}


# By module and name, as in `type(error).__module__` and `__qualname__`; Python's own without the module.
EXCEPTIONS: Mapping[str, str] = _each(
    timeout="""
        TimeoutError socket.timeout concurrent.futures._base.TimeoutError asyncio.exceptions.TimeoutError
        httpx.TimeoutException httpcore.TimeoutException requests.exceptions.Timeout
        urllib3.exceptions.TimeoutError aiohttp.client_exceptions.ServerTimeoutError
        botocore.exceptions.ReadTimeoutError botocore.exceptions.ConnectTimeoutError
        openai.APITimeoutError anthropic.APITimeoutError redis.exceptions.TimeoutError
        playwright._impl._errors.TimeoutError psycopg.errors.QueryCanceled asyncpg.exceptions.QueryCanceledError
        pymongo.errors.ExecutionTimeout""",
    connection_failed="""
        ConnectionError httpx.NetworkError httpx.ProxyError httpx.RemoteProtocolError httpcore.NetworkError
        requests.exceptions.ConnectionError urllib3.exceptions.HTTPError aiohttp.client_exceptions.ClientConnectionError
        aiohttp.client_exceptions.ClientPayloadError socket.gaierror socket.herror ssl.SSLError
        botocore.exceptions.ConnectionError botocore.exceptions.EndpointConnectionError
        botocore.exceptions.HTTPClientError openai.APIConnectionError anthropic.APIConnectionError
        redis.exceptions.ConnectionError pymongo.errors.ConnectionFailure pymongo.errors.AutoReconnect
        psycopg.errors.ConnectionFailure psycopg.errors.AdminShutdown asyncpg.exceptions.PostgresConnectionError
        asyncpg.exceptions.ConnectionDoesNotExistError http.client.RemoteDisconnected http.client.IncompleteRead
        websockets.exceptions.ConnectionClosed paramiko.ssh_exception.NoValidConnectionsError""",
    rate_limited="openai.RateLimitError anthropic.RateLimitError",
    unauthorized="openai.AuthenticationError anthropic.AuthenticationError redis.exceptions.AuthenticationError",
    forbidden="openai.PermissionDeniedError anthropic.PermissionDeniedError",
    not_found="openai.NotFoundError anthropic.NotFoundError",
    conflict="openai.ConflictError anthropic.ConflictError",
    invalid_input="openai.UnprocessableEntityError anthropic.UnprocessableEntityError",
    bad_request="openai.BadRequestError anthropic.BadRequestError",
    server_error="openai.InternalServerError anthropic.InternalServerError",
    missing_credentials="botocore.exceptions.NoCredentialsError botocore.exceptions.PartialCredentialsError",
    invalid_response="""
        json.decoder.JSONDecodeError httpx.DecodingError requests.exceptions.JSONDecodeError
        requests.exceptions.ContentDecodingError aiohttp.client_exceptions.ContentTypeError
        xml.etree.ElementTree.ParseError http.client.BadStatusLine msgspec.DecodeError""",
    validation_failed="""
        pydantic_core._pydantic_core.ValidationError jsonschema.exceptions.ValidationError msgspec.ValidationError
        marshmallow.exceptions.ValidationError botocore.exceptions.ParamValidationError
        django.core.exceptions.ValidationError""",
    deadlock="""
        psycopg.errors.DeadlockDetected psycopg.errors.SerializationFailure
        asyncpg.exceptions.DeadlockDetectedError asyncpg.exceptions.SerializationError""",
    constraint_violation="""
        sqlite3.IntegrityError psycopg.IntegrityError psycopg2.IntegrityError pymysql.err.IntegrityError
        asyncpg.exceptions.IntegrityConstraintViolationError sqlalchemy.exc.IntegrityError
        pymongo.errors.DuplicateKeyError""",
    file_not_found="FileNotFoundError NotADirectoryError",
    permission_denied="PermissionError",
    file_locked="BlockingIOError portalocker.exceptions.LockException filelock._error.Timeout",
    out_of_memory="MemoryError",
    database_down="psycopg.errors.CannotConnectNow",
    element_not_found="""
        selenium.common.exceptions.NoSuchElementException
        selenium.common.exceptions.StaleElementReferenceException
        selenium.common.exceptions.ElementNotInteractableException""",
    navigation_timeout="selenium.common.exceptions.TimeoutException",
)

# Raised before anything was sent: no connection came about. As above, and so are those that are derived from them.
UNSENT = frozenset(
    _each(
        unsent="""
        ConnectionRefusedError socket.gaierror ssl.SSLCertVerificationError
        httpx.ConnectError httpx.ConnectTimeout httpx.PoolTimeout httpx.UnsupportedProtocol httpx.InvalidURL
        httpcore.ConnectError httpcore.ConnectTimeout httpcore.PoolTimeout httpcore.UnsupportedProtocol
        requests.exceptions.ConnectTimeout urllib3.exceptions.NewConnectionError urllib3.exceptions.ConnectTimeoutError
        aiohttp.client_exceptions.ClientConnectorError aiohttp.client_exceptions.ConnectionTimeoutError
        aiohttp.client_exceptions.InvalidURL botocore.exceptions.EndpointConnectionError
        botocore.exceptions.ConnectTimeoutError paramiko.ssh_exception.NoValidConnectionsError"""
    )
)
# Raised when something may have been sent. Where one of these is among the causes, nothing is known of what was.
SENT = frozenset(
    _each(
        sent="""
        ConnectionResetError ConnectionAbortedError BrokenPipeError
        httpx.ReadTimeout httpx.WriteTimeout httpx.ReadError httpx.WriteError httpx.RemoteProtocolError
        httpcore.ReadTimeout httpcore.WriteTimeout httpcore.ReadError httpcore.WriteError httpcore.RemoteProtocolError
        requests.exceptions.ReadTimeout urllib3.exceptions.ReadTimeoutError urllib3.exceptions.ProtocolError
        aiohttp.client_exceptions.ServerDisconnectedError aiohttp.client_exceptions.ClientPayloadError
        aiohttp.client_exceptions.SocketTimeoutError botocore.exceptions.ReadTimeoutError
        botocore.exceptions.ConnectionClosedError http.client.RemoteDisconnected http.client.IncompleteRead"""
    )
)

# What a service itself says in its answer: AWS, model providers, SQLSTATE, names of the operating system's errors.
SERVICES: Mapping[str, str] = _each(
    rate_limited="""
        Throttling ThrottlingException ThrottledException RequestThrottled RequestThrottledException SlowDown
        TooManyRequestsException ProvisionedThroughputExceededException RequestLimitExceeded BandwidthLimitExceeded
        PriorRequestNotComplete EC2ThrottledException rate_limit_exceeded rate_limit_error""",
    service_unavailable="""
        ServiceUnavailable ServiceUnavailableException overloaded_error engine_overloaded ModelNotReadyException
        57P03 53300""",
    server_error="InternalError InternalFailure InternalServerError InternalServerException api_error server_error",
    timeout="RequestTimeout RequestTimeoutException ModelTimeoutException ETIMEDOUT 57014 55P03 25P03",
    connection_failed="""
        ECONNREFUSED ECONNRESET ECONNABORTED EPIPE EHOSTUNREACH ENETUNREACH ENETDOWN EHOSTDOWN
        08000 08001 08003 08004 08006 57P01 57P02""",
    unauthorized="""
        ExpiredToken ExpiredTokenException RequestExpired InvalidClientTokenId UnrecognizedClientException
        InvalidSignatureException SignatureDoesNotMatch InvalidAccessKeyId AuthFailure invalid_api_key
        authentication_error 28000 28P01""",
    forbidden="AccessDenied AccessDeniedException UnauthorizedOperation NotAuthorizedException permission_error 42501",
    not_found="""
        NoSuchKey NoSuchBucket NoSuchEntity NoSuchUpload ResourceNotFoundException NotFoundException NotFound
        not_found_error""",
    resource_moved="PermanentRedirect",
    conflict="""
        ConditionalCheckFailedException ConflictException ResourceConflictException OperationAborted
        PreconditionFailed ResourceInUseException OptimisticLockException ConcurrentModificationException""",
    deadlock="TransactionConflictException TransactionInProgressException 40P01 40001",
    bad_request="ValidationException InvalidParameterValue InvalidParameterException MalformedInput invalid_request_error",
    context_exceeded="context_length_exceeded string_above_max_length request_too_large",
    content_policy="content_filter content_policy_violation moderation_blocked",
    model_unavailable="model_not_found ModelErrorException model_overloaded",
    quota_exceeded="""
        insufficient_quota billing_hard_limit_reached ServiceQuotaExceededException LimitExceededException
        QuotaExceededException billing_error""",
    missing_credentials="MissingAuthenticationToken MissingAuthenticationTokenException",
    disk_full="ENOSPC EDQUOT 53100",
    out_of_memory="ENOMEM 53200",
    file_not_found="ENOENT ENOTDIR",
    permission_denied="EACCES EPERM EROFS",
    file_locked="EAGAIN EBUSY ETXTBSY EDEADLK SQLITE_BUSY SQLITE_LOCKED",
    constraint_violation="""
        23000 23001 23502 23503 23505 23514 23P01 SQLITE_CONSTRAINT SQLITE_CONSTRAINT_UNIQUE
        SQLITE_CONSTRAINT_FOREIGNKEY SQLITE_CONSTRAINT_NOTNULL SQLITE_CONSTRAINT_PRIMARYKEY SQLITE_CONSTRAINT_CHECK""",
)


RETRYABLE = frozenset({"transient", "unknown"})
"""The classes that are worth another try with nothing changed."""

_MOST = 64
_STRANGE = re.compile(r"[^a-z0-9_.]")


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The identity of a failure: its code, its class, and the HTTP status if any."""

    code: str
    kind: str
    status: int = 0


def code_of(name: str) -> str:
    """Return a code in Baton's spelling: `NETWORK_ERROR`, `not-found` and `503` are other spellings."""
    text = _STRANGE.sub("_", name.strip().lower())[:_MOST]
    if len(text) == 3 and text.isdigit():
        return code_of_status(int(text)) or text
    return ALIASES.get(text, text)


def code_of_status(status: int) -> str:
    """Return the code of an HTTP status; empty for a status that is no failure."""
    if status in STATUSES:
        return STATUSES[status]
    return {4: OTHER_4XX, 5: OTHER_5XX}.get(status // 100, "")


def classify(
    *,
    code: str = "",
    kind: str = "",
    services: Sequence[str] = (),
    status: int = 0,
    exceptions: Sequence[str] = (),
) -> Verdict:
    """Return the code and class of a failure.

    code: the code that the tool itself gives. kind: the class that it gives, in any spelling; an unknown
    class is ignored.
    services: codes out of the service's answer, such as `ThrottlingException`. status: of HTTP, 0 for none.
    exceptions: names with their modules, the most exact one first. The tool counts before the service, that
    before the status, and that before the name of an exception, which is a defect if it is on the list of
    these. An unknown code stays, with the class of the other evidence.
    """
    known = _first(services, SERVICES) or code_of_status(status) or _first(exceptions, EXCEPTIONS)
    if not known:
        # What a tool itself says is no defect, whatever it was raised from.
        known = TOOL_DEFECT if is_bug(exceptions) and not code else "tool_error" if exceptions else UNKNOWN
    found = code_of(code) or known
    of = class_of(found if found in CODES else known)
    kind = _STRANGE.sub("_", kind.strip().lower())
    return Verdict(found, kind if kind in CLASSES else of, status)


def _first(names: Sequence[str], table: Mapping[str, str]) -> str:
    return next((table[name] for name in names if name in table), "")


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IS_EXCEPTION = re.compile(r"[A-Z]\w*[a-z]\w*(Error|Exception|Timeout|Interrupt)")
_IS_CLASS = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
_SUFFIX = re.compile("(Error|Exception)$")
_MOST_EDITS = 2
_SHORTEST = 4
_BY_LAST_PART = {name.rpartition(".")[2]: code for name, code in reversed(list(EXCEPTIONS.items()))}


def exception_meant(name: str) -> str | None:
    """Return the code to write in place of an exception's or a service error's name; None for any
    other name.
    """
    last = name.rpartition(".")[2]
    known = EXCEPTIONS.get(name) or _BY_LAST_PART.get(last) or SERVICES.get(last)
    is_called = _IS_EXCEPTION.fullmatch(last) is not None
    if known is None and not is_called and not _IS_CLASS.fullmatch(last):
        return None
    if not any(letter.isupper() for letter in last) or last.isupper():
        return None  # `api_error`, `ETIMEDOUT`: a tool may say so itself
    short = _CAMEL.sub("_", _SUFFIX.sub("", last)).lower()
    if known is None:
        known = short if short in CODES or short in CLASSES else ALIASES.get(short) or near(short, CLASSES)
    if known:
        return f"write `{known}`"
    said = f'let the tool raise `StepFailure("{short}")`, and write `{short}`'
    # A service's own code may look so, too, and a tool may pass it on.
    return said if is_called else f"{said}; the code of a tool that says `{name}` itself is `{code_of(name)}`"


def near(code: str, more: Collection[str] = ()) -> str:
    """Return the code, or one of `more`, of which this is a near miss; empty for a known code, and for one
    unlike any.
    """
    if code in CODES or code in more:
        return ""
    found = next((known for known in (*more, *CODES, *ALIASES) if _is_near(code, known)), "")
    return found if found in more else code_of(found)


def _is_near(code: str, known: str) -> bool:
    """Return true if two names differ by typing errors: one in a word, two in all, or in the division of
    words.
    """
    ours, theirs = _words(code), _words(known)
    if "".join(ours) == "".join(theirs):
        return True
    if len(ours) != len(theirs) or len(known) < _SHORTEST:
        return False
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
    return len(pairs) <= _MOST_EDITS and all(_is_slip(one, other) for one, other in pairs)


def _words(name: str) -> list[str]:
    return re.split("[_.]", name)


def _is_slip(one: str, other: str) -> bool:
    """Return true if one letter is missing, extra, different, or has changed places with its neighbour."""
    if len(one) > len(other):
        one, other = other, one
    start = _shared(one, other)
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    swapped = (
        one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    )
    return swapped or one[start + 1 :] == other[start + 1 :]


def _shared(one: Iterable[str], other: Iterable[str]) -> int:
    """Return the number of equal letters from the beginning on."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
