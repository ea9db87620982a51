"""The compiled graph: frozen, addressed by the hash of its content, stored as a blob.

What a running process derives from a graph for speed is in program.py.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from baton.errors import UnknownEntry

FORMAT = 1
KINDS = frozenset({"task", "wait", "workflow"})


class Node(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
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


class Graph(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow, compiled. `nodes` are in a topological order; `output` is a template or None."""

    format: int = FORMAT
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
    """Raises `UnknownEntry` for a graph that a newer version compiled."""
    try:
        graph = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnknownEntry(f"a graph that this version cannot read: {error}") from error
    strange = {node.kind for node in graph.nodes} - KINDS
    if graph.format != FORMAT or strange:
        raise UnknownEntry(f"a graph of format {graph.format} with nodes of unknown kinds {sorted(strange)}")
    return graph


def hash_of(data: bytes) -> str:
    """SHA-256, hexadecimal: the name of a graph's bytes."""
    return hashlib.sha256(data).hexdigest()
