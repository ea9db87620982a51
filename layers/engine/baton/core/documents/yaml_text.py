"""Data to text: a JSON value as the YAML that text.py reads back as the same value."""

from __future__ import annotations

from typing import Any

import yaml

from baton.core.documents.text import NUMBER

_LINE_ENDS = frozenset("\x85\u2028\u2029")
_LONGEST_ROW = 80


class _Dumper(yaml.SafeDumper):
    """Every value written out where it stands, lists set in."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def text(self, value: str) -> yaml.ScalarNode:
        style = None
        if "${" in value or NUMBER.fullmatch(value) or not _LINE_ENDS.isdisjoint(value):
            # An expression, as everybody writes it; what YAML 1.1 takes for text and JSON for a number; what
            # YAML takes for the end of a line.
            style = '"'
        elif "\n" in value:
            style = "|"
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    def row(self, value: list[Any]) -> yaml.SequenceNode:
        """Write a list on one line if it is short and simple."""
        is_flat = not any(isinstance(item, (list, dict)) for item in value)
        is_row = is_flat and sum(len(str(item)) + 2 for item in value) <= _LONGEST_ROW
        return self.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=is_row)


_Dumper.add_representer(str, _Dumper.text)
_Dumper.add_representer(list, _Dumper.row)


def write_yaml(value: Any) -> str:
    """Write a JSON value as YAML, keys in their order. `parse_document` gives the same value back."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=float("inf"),
    )
    return text
