"""The layers as Lambda gets them: which parts of the engine and of an
app go in, their dependencies, bytecode.

Run by the layers' Makefiles, of this project and of every one that uses the package. Never shipped itself;
of the engine it only asks for the prices of models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Target:
    """The platform that the layers are built for, whatever machine builds them."""

    python: str
    platform: str
    magic: bytes
    """First four bytes of this Python's .pyc files: the same from its first release candidate on."""


LAMBDA: Final = Target(
    python="3.13",
    platform="aarch64-manylinux_2_34",
    magic=(3571).to_bytes(2, "little") + b"\r\n",  # CPython: Include/internal/pycore_magic_number.h
)

# Where Lambda unpacks the Python part of a layer: the path that tracebacks show.
UNPACKED: Final = "/opt/python"

# Rooms of the engine that run on a person's machine only.
NOT_SHIPPED: Final = frozenset({"cli", "client", "demo", "local", "scaffold", "shipping", "testing"})
