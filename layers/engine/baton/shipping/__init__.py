"""Build of the Lambda layers: code of the engine and the app, their dependencies, and bytecode.

The layers' Makefiles run this package, in this project and in projects that use Baton. It is not part of a
layer, and uses the engine only for the prices of models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Target:
    """Platform of the layers, independent of the build machine."""

    python: str
    platform: str
    magic: bytes
    """First four bytes of this Python's .pyc files. They are the same from its first release candidate on."""


LAMBDA: Final = Target(
    python="3.13",
    platform="aarch64-manylinux_2_34",
    magic=(3571).to_bytes(2, "little") + b"\r\n",  # CPython: Include/internal/pycore_magic_number.h
)

# Where Lambda unpacks the Python part of a layer: the path that tracebacks show.
UNPACKED: Final = "/opt/python"

# Rooms of the engine that run on a person's machine only.
NOT_SHIPPED: Final = frozenset(
    {"cli", "client", "demo", "local", "project", "scaffold", "shipping", "testing"}
)
