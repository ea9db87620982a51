"""The attribute `labels` of a head: what lists show besides, as JSON. It is projected, and a projection cannot be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class _Labels(msgspec.Struct, omit_defaults=True):
    models: dict[str, tuple[int, int, int]] = {}


_decode = msgspec.json.Decoder(_Labels).decode
_encode = msgspec.json.Encoder().encode


def models_text(models: Mapping[str, tuple[int, int, int]]) -> str:
    """As it is stored."""
    return _encode(_Labels(dict(models))).decode()


def models_in(item: Mapping[str, Any]) -> dict[str, tuple[int, int, int]]:
    """What an item says of models; nothing where it says nothing. Raises `ValueError`."""
    return _decode(item["labels"]["S"]).models if "labels" in item else {}
