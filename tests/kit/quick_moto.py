"""moto, in half the time: nothing of what it answers is changed, only how long it looks for it.

Only the few inner parts of moto and botocore that cost most of a test's time are replaced.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import botocore.auth
import moto.core.responses
from botocore.awsrequest import AWSRequest
from botocore.exceptions import NoCredentialsError
from moto import backend_index
from moto.core import models
from moto.core.model import StructureShape
from moto.core.serialize import BaseJSONSerializer
from moto.core.utils import method_names_from_class
from moto.dynamodb.parsing.ast_nodes import Node

from baton.adapters import aws
from baton.adapters.aws import ServiceModels

OURS = frozenset({"dynamodb", "dynamodbstreams", "lambda", "sns", "sqs"})
_structure = BaseJSONSerializer._serialize_type_structure
_names = cache(method_names_from_class)
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
