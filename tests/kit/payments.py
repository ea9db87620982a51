"""A payment service on loopback, with books: accounts, reservations, payments, and every request it got.

What a tool makes of it is in the tests. Amounts are in cents.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOST, DOWN, SLOW, NO = "lost", "down", "slow", "no"
"""Faults: done, but the connection ends without an answer; 503 and nothing done; no answer until the end; 422 and
nothing done, this time."""


class Refusal(Exception):
    """Nothing was done."""

    def __init__(self, status: int, title: str) -> None:
        super().__init__(title)
        self.status, self.title = status, title


@dataclass
class Reservation:
    id: str
    reference: str
    account: str
    to: str
    amount: int
    currency: str
    status: str = "reserved"
    payment: str = ""
    refund: str = ""


@dataclass
class Payments:
    """The books. `refuse`: execution is refused with this status. `faults`: by phase, in the order they come up."""

    url: str = ""
    accounts: dict[str, int] = field(default_factory=lambda: {"default": 100_000})
    reservations: dict[str, Reservation] = field(default_factory=dict)
    paid: list[Reservation] = field(default_factory=list)
    refunded: list[Reservation] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    refuse: int = 0
    faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    over: threading.Event = field(default_factory=threading.Event)
    _answers: dict[str, tuple[str, int, Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def held(self) -> int:
        """What is reserved and neither paid nor released."""
        return sum(one.amount for one in self.reservations.values() if one.status == "reserved")

    def act(self, phase: str, path: str, key: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and answer; the same key gets the same answer, and does nothing more."""
        with self._lock:
            self.requests.append((phase, key))
            what = json.dumps([path, body], sort_keys=True)
            if key in self._answers:
                first, status, answer = self._answers[key]
                return (
                    (status, answer) if first == what else (422, {"title": "the key came with another body"})
                )
            try:
                status, answer = 200, asdict(self._carry_out(phase, path, body))
            except Refusal as refusal:
                status, answer = refusal.status, {"title": refusal.title}
            self._answers[key] = (what, status, answer)
            return status, answer

    def _carry_out(self, phase: str, path: str, body: Mapping[str, Any]) -> Reservation:
        if phase == "reserve":
            if self.accounts.get(body["account"], 0) - self.held < body["amount"]:
                raise Refusal(402, "insufficient funds")
            parts = {name: body[name] for name in ("reference", "account", "to", "amount", "currency")}
            made = Reservation(id=f"r-{len(self.reservations) + 1}", **parts)
            self.reservations[made.id] = made
            return made
        made = self.reservations[path.split("/")[2]]
        if phase == "execute":
            if self.refuse:
                raise Refusal(self.refuse, "the payee is blocked")
            self._must(made, "reserved")
            self.accounts[made.account] -= made.amount
            made.status, made.payment = "executed", f"p-{len(self.paid) + 1}"
            self.paid.append(made)
        elif phase == "confirm":
            self._must(made, "executed")
            made.status = "confirmed"
        elif phase == "refund":
            self._must(made, "executed", "confirmed")
            self.accounts[made.account] += made.amount
            self.refunded.append(made)
            made.status, made.refund = "refunded", f"b-{len(self.refunded)}"
        else:
            self._must(made, "reserved")
            made.status = "released"
        return made

    def _must(self, made: Reservation, *statuses: str) -> None:
        if made.status not in statuses:
            raise Refusal(409, f"it is {made.status}")

    def found(self, reference: str) -> Any:
        self.requests.append(("find", reference))
        return {"reservations": [asdict(r) for r in self.reservations.values() if r.reference == reference]}


class _Desk(BaseHTTPRequestHandler):
    books: Payments
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        (reference,) = parse_qs(urlsplit(self.path).query)["reference"]
        self._fault("find", lambda: (200, self.books.found(reference)))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        phase = "reserve" if self.path == "/reservations" else self.path.rpartition("/")[2]
        key = self.headers["idempotency-key"]
        self._fault(phase, lambda: self.books.act(phase, self.path, key, body))

    def _fault(self, phase: str, act: Any) -> None:
        faults = self.books.faults[phase]
        fault = faults.pop(0) if faults else ""
        if fault == DOWN:
            return self._answer(503, {"title": "closed"})
        if fault == NO:
            return self._answer(422, {"title": "not to be done"})
        status, answer = act()
        if fault == SLOW:
            self.books.over.wait(30)
        if fault in (LOST, SLOW):
            self.close_connection = True
            return None
        return self._answer(status, answer)

    def _answer(self, status: int, answer: Any) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if status == 503:
            self.send_header("retry-after", "7")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are in the books."""


@contextmanager
def payment_service() -> Iterator[Payments]:
    """Open as long as the block lasts, on a port of its own."""
    books = Payments()
    handler = type("Desk", (_Desk,), {"books": books, "disable_nagle_algorithm": True})
    with serving(handler) as books.url:
        yield books
        books.over.set()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server on loopback with this handler."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
