"""What the tools of trial.py did, written down outside the engine: a folder with a line for every deed.

The same file writes (in the functions' processes) and reads (in the tests). It knows nothing of Baton.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "TRIAL_BOOKS"


@dataclass(frozen=True)
class Deed:
    """`kind` is begun (a tool was called) or ended (it is about to return)."""

    kind: str
    saga: str
    node: str
    key: str
    pid: int
    at_ms: int


class Books:
    """One folder. Every record is one system call, so that a process killed at any time leaves none half done.

    A deed is a line of a file, an effect an empty file named for saga, node and idempotency key. A gate is a file,
    too: it is shut until a test makes it.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "deeds.jsonl"
        self._effects = folder / "effects"
        self._gates = folder / "gates"
        for each in (self._effects, self._gates):
            each.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_environment(cls) -> Books:
        return cls(Path(os.environ[VARIABLE]))

    def write(self, kind: str, saga: str, node: str, key: str) -> None:
        deed = Deed(kind, saga, node, key, os.getpid(), time.time_ns() // 1_000_000)
        line = json.dumps(asdict(deed)).encode() + b"\n"
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def do_once(self, saga: str, node: str, key: str) -> None:
        """The effect of an idempotent service: the second request with a key changes nothing."""
        (self._effects / f"{saga}~{node}~{key}").touch()

    def is_open(self, gate: str) -> bool:
        """Whether the test lets those go on that wait at this gate."""
        return (self._gates / gate).exists()

    # ---- for tests

    def open(self, gate: str) -> None:
        """For good."""
        (self._gates / gate).touch()

    def deeds(self, saga: str = "", kind: str = "") -> list[Deed]:
        """All so far, in order; of one saga, or of one kind."""
        if not self._file.exists():
            return []
        found = [Deed(**json.loads(line)) for line in self._file.read_text().splitlines()]
        return [deed for deed in found if saga in ("", deed.saga) and kind in ("", deed.kind)]

    def begun(self, saga: str) -> Counter[str]:
        """How often each node's tool was called."""
        return Counter(deed.node for deed in self.deeds(saga, "begun"))

    def effects(self, saga: str) -> Counter[str]:
        """How many effects each node had: one, whatever the number of calls, if all had the same key."""
        names = (file.name.split("~") for file in self._effects.iterdir())
        return Counter(node for of, node, _ in names if of == saga)
