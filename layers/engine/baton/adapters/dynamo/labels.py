"""The attribute `labels` of a head: what lists show besides, as JSON. It is projected, and a projection cannot be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class _Labels(msgspec.Struct, omit_defaults=True):
    models: dict[str, tuple[int, int, int]] = {}
    own: dict[str, str] = {}


_decode = msgspec.json.Decoder(_Labels).decode
_encode = msgspec.json.Encoder().encode


def labels_text(models: Mapping[str, tuple[int, int, int]], own: Mapping[str, str]) -> str:
    """As it is stored: of models, and the saga's own labels."""
    return _encode(_Labels(dict(models), dict(own))).decode()


def row_filter(equal: Mapping[str, str], own: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The terms of a filter, and their values, for rows whose attributes are these (empty: any) and who have these labels."""
    values = {f":{name}": value for name, value in equal.items() if value}
    terms = [f"#{name[1:]} = {name}" for name in values]
    for number, (name, value) in enumerate(own.items()):
        # It stands so in the attribute of no other saga: a quote inside of a text is escaped.
        values[f":label{number}"] = f"{_encode(name).decode()}:{_encode(value).decode()}"
        terms.append(f"contains(#labels, :label{number})")
    return terms, values


def labels_in(item: Mapping[str, Any]) -> dict[str, Any]:
    """What an item says, as fields of a head. Raises `ValueError`."""
    if "labels" not in item:
        return {}
    found = _decode(item["labels"]["S"])
    return {"models": found.models, "labels": found.own}
