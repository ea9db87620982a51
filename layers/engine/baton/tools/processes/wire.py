"""Wire format between worker and helper: frames with a tag, the number of a call, and bytes.
The program that begins it is here, too: the worker has no need to load forker.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

# From the worker: a call.
CALL: Final = 1
# From the helper. It can be called; or never will be, and why.
READY: Final = 2
BROKEN: Final = 3
# During a call, any number of these …
LOG: Final = 4
SPENT: Final = 5
USED: Final = 12
# … of questions about the journal and the money, each with its ANSWER by the worker before the next …
UNITS: Final = 9
UNIT: Final = 10
HOLD: Final = 13
ANSWER: Final = 11
# … and at its end one of these.
VALUE: Final = 6
FAILURE: Final = 7
NO_ROOM: Final = 8
ENDS: Final = frozenset({VALUE, FAILURE, NO_ROOM})

# By the forker, on the socket of a helper's life: how it ended, as waitpid says it.
STATUS: Final = struct.Struct("!i")

# Program of a forker's interpreter. The worker's own way of finding modules is in no variable: on Lambda its
# bootstrap makes it.
PROGRAM: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from baton.tools.processes.forker import main; main(sys.argv[1])"
)

MAX_TEXT: Final = 100_000  # characters of whatever is told to a person
ASSUMED: Final = b"~"
"""Begins an amount of SPENT that is assumed, or is so no longer."""
LONGEST: Final = 0xFFFF_FFFF
_HEADER: Final = struct.Struct("!BII")


class InvalidFrame(Exception):
    """Error for bytes that no helper of ours sends."""


class Frame(NamedTuple):
    """Message between a worker and a helper process."""

    tag: int
    call: int
    data: bytes


def encode(tag: int, call: int, data: bytes) -> bytes:
    """Return the bytes of a frame."""
    return _HEADER.pack(tag, call, len(data)) + data


class Decoder:
    """Decoder of frames from bytes as they arrive. `most` is the length of the longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames in the data. Raises `InvalidFrame`."""
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            tag, call, length = _HEADER.unpack_from(self._buffer)
            if length > self._most or not CALL <= tag <= HOLD:
                raise InvalidFrame(f"a frame of tag {tag} with {length} bytes")
            end = _HEADER.size + length
            if len(self._buffer) < end:
                return
            frame = Frame(tag, call, bytes(self._buffer[_HEADER.size : end]))
            del self._buffer[:end]
            yield frame
