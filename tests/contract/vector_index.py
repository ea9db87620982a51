"""An index that speaks as Amazon S3 Vectors does, on loopback: as much of its API as the adapter uses, as it is documented.

No assertions here. Nothing of it ran against the real service.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INDEX = "arn:aws:s3vectors:eu-central-1:123456789012:bucket/facts/index/facts"
_MOST_ASKED = 100


class VectorIndex(ThreadingHTTPServer):
    """`vectors` by key, as they were put; `requests`: the operations and bodies."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.vectors: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, operation: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append((operation, body))
        if body.get("indexArn") != INDEX:
            return 404, {"message": "The specified index could not be found"}
        if operation == "PutVectors":
            for vector in body["vectors"]:
                if any(
                    len(one["data"]["float32"]) != len(vector["data"]["float32"])
                    for one in self.vectors.values()
                ):
                    return 400, {"message": "Invalid record for key: vector must have length of the index"}
                self.vectors[vector["key"]] = vector
            return 200, {}
        if operation == "DeleteVectors":
            for key in body["keys"]:
                self.vectors.pop(key, None)
            return 200, {}
        if operation == "QueryVectors" and 1 <= body["topK"] <= _MOST_ASKED:
            asked = body["queryVector"]["float32"]
            found: list[dict[str, Any]] = [
                {"key": key, "distance": 1 - _cosine(asked, one["data"]["float32"])}
                for key, one in self.vectors.items()
                if _matches(body["filter"], one["metadata"])
            ]
            nearest = sorted(found, key=lambda one: one["distance"])[: body["topK"]]
            return 200, {"vectors": nearest, "distanceMetric": "cosine"}
        return 400, {"message": f"{operation}: invalid"}


def _matches(wanted: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    if "$and" in wanted:
        return all(_matches(one, metadata) for one in wanted["$and"])
    return all(metadata.get(name) == rule["$eq"] for name, rule in wanted.items())


def _cosine(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True)) / (math.hypot(*left) * math.hypot(*right))


class _Handler(BaseHTTPRequestHandler):
    server: VectorIndex

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, answer = self.server.answer(self.path.removeprefix("/"), body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        if status != 200:
            self.send_header(
                "x-amzn-errortype", "NotFoundException" if status == 404 else "ValidationException"
            )
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def vector_index() -> Iterator[VectorIndex]:
    server = VectorIndex()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
