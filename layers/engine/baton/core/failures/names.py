"""What the outside calls its failures: HTTP statuses, exceptions, codes of services. Each leads to one of our codes.

Libraries are known by the text of their names and never imported. What a code means is in codes.py, how a failure is
asked for its names in evidence.py.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    """`code="name name"` the other way round."""
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
