"""moto, in half the time: nothing of what it answers is changed, only how long it looks for it.

Only the few inner parts of moto and botocore that cost most of a test's time are replaced.
"""

from __future__ import annotations

import re
from copy import deepcopy
from functools import cache, partial
from itertools import count
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse

import botocore.auth
import botocore.useragent
import moto.core.responses
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from botocore.exceptions import NoCredentialsError
from moto import backend_index
from moto.core import models
from moto.core.base_backend import BaseBackend
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.model import StructureShape
from moto.core.serialize import BaseJSONSerializer
from moto.core.utils import method_names_from_class, utcnow
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import ActionCountValidator, OverlappingPathsValidator
from moto.dynamodb.responses import DynamoHandler
from moto.iam.models import mark_account_as_visited
from moto.utilities.utils import get_partition
from werkzeug.datastructures import Headers
from werkzeug.http import http_date

from baton.adapters import aws
from baton.adapters.aws import ServiceModels

OURS = frozenset({"dynamodb", "dynamodbstreams", "lambda", "sns", "sqs"})
_TABLES = re.compile(r"https://dynamodb\.[a-z0-9-]+\.amazonaws\.com/$")
_structure = BaseJSONSerializer._serialize_type_structure
_any_request = BotocoreStubber.process_request
_numbers = count()
_said_of_itself = cache(botocore.useragent.sanitize_user_agent_string_component)
_names = cache(method_names_from_class)
_token = cache(partial(ConditionExpressionParser._lex_one_node, ConditionExpressionParser))
_parsed = cache(UpdateExpressionParser.make)
_is_kind_of: Any = cache(issubclass)  # the classes are abstract, which makes each `isinstance` a search
_urls: Any = vars(BaseBackend)["urls"]
_cast: Any = vars(DynamoType)["cast_value"]
_urls_of: dict[type[BaseBackend], Any] = {}
_models = cache(ServiceModels)


def hasten() -> None:
    """For the whole process; to ask for it again changes nothing."""
    # For the library `requests`, which no client of AWS uses: 1,300 patterns at every start.
    models.RESPONSES_METHODS.clear()
    # Whose address it is, is looked for one service after the other.
    backend_index.backend_url_patterns.sort(key=lambda known: known[0] not in OURS)
    BaseJSONSerializer._serialize_type_structure = _of_what_is_there
    # Of the same class, at every request.
    moto.core.responses.method_names_from_class = _names
    Node.__deepcopy__ = _twin
    setattr(DynamoType, "__deepcopy__", _copied)  # noqa: B010
    # The product has few expressions: most of an update was to read its own, twice, and then to go through it ten times.
    setattr(ConditionExpressionParser, "_lex_one_node", lambda self, rest: _token(rest))  # noqa: B010
    setattr(UpdateExpressionParser, "make", _parsed)  # noqa: B010
    DepthFirstTraverser.traverse = _traversed
    # What the root of an expression has, its branches have no more of.
    setattr(ActionCountValidator, "traverse", ActionCountValidator.verify_action_counts)  # noqa: B010
    setattr(OverlappingPathsValidator, "traverse", OverlappingPathsValidator.check_for_overlapping_paths)  # noqa: B010
    # Most values are text, which is asked first whether it is a number, a set, a list or a mapping.
    setattr(DynamoType, "cast_value", property(_cast_value))  # noqa: B010
    # S3's were imported anew at each request.
    setattr(BaseBackend, "urls", property(_known_urls))  # noqa: B010
    BotocoreStubber.process_request = _request
    # Each request says the same thing of its client, twice, put together from a dozen parts.
    setattr(botocore.useragent, "sanitize_user_agent_string_component", _said_of_itself)  # noqa: B010
    setattr(moto.core.responses, "gen_amzn_requestid_long", _numbered)  # noqa: B010
    # The descriptions of the services are the same for every session. The clients of one share them, too.
    setattr(aws, "ServiceModels", _models)  # noqa: B010
    # Not S3's, whose signature says how a body is encoded.
    botocore.auth.AUTH_TYPE_MAPS["v4"] = _Unsigned


class _Unsigned(botocore.auth.BaseSigner):
    """Says who asks, and proves nothing: moto and MiniStack look for no proof."""

    REQUIRES_REGION = True

    def __init__(self, credentials: Any, service_name: str, region_name: str) -> None:
        self._credentials = credentials
        self._scope = f"20260101/{region_name}/{service_name}/aws4_request"

    def add_auth(self, request: AWSRequest) -> None:
        if self._credentials is None:
            raise NoCredentialsError
        who = f"Credential={self._credentials.access_key}/{self._scope}"
        del request.headers["Authorization"]  # of an attempt before
        request.headers["Authorization"] = f"AWS4-HMAC-SHA256 {who}, SignedHeaders=host, Signature=none"


def _request(self: BotocoreStubber, request: AWSPreparedRequest) -> Any:
    """One to DynamoDB needs no WSGI, nor a look for forms and query strings in its JSON: its parts are put where moto does."""
    if _TABLES.match(request.url) is None or type(request.body) is not bytes:
        return _any_request(self, request)
    named: Any = request.headers.items()
    headers = Headers([(name, one.decode() if isinstance(one, bytes) else one) for name, one in named])
    parts = SimpleNamespace(
        method=request.method,
        headers=headers,
        content_type=headers.get("content-type"),
        data=request.body,
        values={},
        path="/",
        raw_path="/",
        raw_url=request.url,
    )
    asked = DynamoHandler()
    asked.is_werkzeug_request = False
    asked.normalized_request, asked.headers, asked.method = parts, headers, request.method
    asked.raw_body = asked.body = request.body.decode()
    asked.parsed_url, asked.uri, asked.path, asked.raw_path = urlparse(request.url), request.url, "/", "/"
    asked.form_data, asked.querystring, asked.uri_match = {}, {}, {}
    asked.data = asked.querystring
    asked.region = asked.get_region_from_url(parts, request.url)
    asked.partition = get_partition(asked.region)
    asked.response_headers = {"server": "amazon.com", "date": http_date(utcnow())}
    asked.parse_parameters(parts)
    asked.access_key, asked.current_account = asked.get_access_key(), asked.get_current_account()
    mark_account_as_visited(asked.current_account, asked.access_key, "dynamodb", asked.region)
    return asked.call_action()


def _numbered(headers: dict[str, str]) -> str:
    """The id of a request, which moto draws letter by letter."""
    return headers.setdefault("x-amzn-requestid", f"{next(_numbers):052}")


def _twin(self: Node, memo: dict[int, Any]) -> Node:
    """A node of an expression has a type, children that are nodes or values, and a parent, which sets itself."""
    twin = object.__new__(type(self))
    vars(twin).update(vars(self), parent=None)
    if self.children is not None:
        twin.children = [_twin(child, memo) if isinstance(child, Node) else child for child in self.children]
        for child in twin.children:
            if isinstance(child, Node):
                child.set_parent(twin)
    return twin


def _copied(self: DynamoType, memo: dict[int, Any]) -> DynamoType:
    """Most values are text: at each update its item is copied, several times."""
    twin = object.__new__(DynamoType)
    value = self.value if type(self.value) is str else deepcopy(self.value, memo)
    twin.type, twin.value = self.type, value
    return twin


def _traversed(self: DepthFirstTraverser, node: Any) -> Any:
    """From the leaves to the root, as moto does, which asks for the kinds that are meant at each node anew."""
    kinds = self.nodes_to_be_processed()

    def walk(node: Any, place: int) -> Any:
        parent = node.parent
        for number, child in enumerate(node.children or ()):
            self.pre_processing_of_child(node, number)
            if _is_kind_of(type(child), Node):
                walk(child, number)
        if _is_kind_of(type(node), kinds):
            node = self.process(node)
            node.parent = parent
            if parent:
                parent.children[place] = node
        return node

    return walk(node, -1)


def _cast_value(self: DynamoType) -> Any:
    return self.value if self.type == "S" else _cast.fget(self)


def _known_urls(self: BaseBackend) -> Any:
    if type(self) not in _urls_of:
        _urls_of[type(self)] = _urls.fget(self)
    return _urls_of[type(self)]


def _of_what_is_there(
    self: BaseJSONSerializer, serialized: Any, value: Any, shape: StructureShape, key: str
) -> None:
    """An attribute of an item has one of ten members; moto would look for each under all its names."""
    if shape.name != "AttributeValue" or type(value) is not dict:
        _structure(self, serialized, value, shape, key)
        return
    found: dict[str, Any] = {}
    for name, member in value.items():
        self._serialize(found, member, shape.members[name], name)
    self._default_serialize(serialized, found, shape, key)
