"""The compiled graph: frozen, addressed by the hash of its content, stored as a blob.

What a running process derives from a graph for speed is in program.py.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


class Node(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One node. `arguments` is the document's `with`; `timeout_ms` 0 means the engine's default.

    `kind` is task, wait or workflow. `wait_ms` None: no time limit on the wait.
    """

    name: str
    kind: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    arguments: Any = None
    tool: str = ""
    tool_version: str = ""
    schema_hash: str = ""
    effect: str = ""
    timeout_ms: int = 0
    wait_ms: int | None = None
    signal: str = ""
    workflow: str = ""


class Graph(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A workflow, compiled. `nodes` are in a topological order; `output` is a template or None."""

    name: str
    nodes: tuple[Node, ...]
    output: Any = None
    input_schema: Any = None


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Graph).decode


def encode_graph(graph: Graph) -> bytes:
    """Deterministic: equal graphs have equal bytes."""
    return _encode(graph)


def decode_graph(data: bytes) -> Graph:
    return _decode(data)


def hash_of(data: bytes) -> str:
    """SHA-256, hexadecimal: the name of a graph's bytes."""
    return hashlib.sha256(data).hexdigest()
