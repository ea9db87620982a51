"""Labels of sagas: names and values that are set at the start and searched in lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from baton.core.failures.secret_names import SecretNameKind, is_secret_name
from baton.core.on_demand import OnDemand
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.failures import evident
else:
    evident = OnDemand("baton.core.failures.evident")

MOST = 10
LONGEST_NAME, LONGEST_VALUE = 63, 128
NAME = rf"[A-Za-z][A-Za-z0-9._/-]{{0,{LONGEST_NAME - 1}}}"
# No comma, which stands between the labels that a list is asked for; no control character.
VALUE = rf"[^,\x00-\x1f\x7f]{{1,{LONGEST_VALUE}}}"
_SHORTEST_KEY = 12
_PAIR = re.compile(rf"({NAME})=({VALUE})")


def label_problems(labels: Mapping[str, str], place: str = "/labels") -> list[Problem]:
    """Return the problems of the labels for a saga."""
    if len(labels) > MOST:
        return [Problem(place, f"a saga has at most {MOST} labels; these are {len(labels)}")]
    found = []
    for name, value in labels.items():
        if not re.fullmatch(NAME, name):
            message = f"`{name[:80]}` is no name of a label: at most {LONGEST_NAME} letters, digits, `.`, `_`, `/` and `-`, a letter first"
            found.append(Problem(place, message))
        elif not re.fullmatch(VALUE, value):
            message = f"the value of label `{name}` has 1 to {LONGEST_VALUE} characters, none of them a comma or a line break"
            found.append(Problem(f"{place}/{name.replace('/', '~1')}", message))
        elif _is_secret(name, value):
            message = f"the value of label `{name}` looks like a secret; labels are stored as they are given, and shown in lists"
            found.append(Problem(f"{place}/{name.replace('/', '~1')}", message))
    return found


def _is_secret(name: str, value: str) -> bool:
    """Return true if the value has a password's name or a key's shape, or has another secret's name and looks
    random.

    Ids that look random and names such as `pin` and `webhook` are ordinary labels.
    """
    kind = is_secret_name(name)
    if kind is SecretNameKind.PASSWORD:
        return True
    if len(value) < _SHORTEST_KEY or value.islower() or value.isdecimal():
        return False
    return evident.is_key(value) or (
        kind is SecretNameKind.SECRET and evident.is_random(value, _SHORTEST_KEY)
    )


def read_labels(text: str) -> dict[str, str]:
    """Return the labels of `name=value,name=value`. Raises `ValueError` with the correct form."""
    labels = {}
    for part in text.split(","):
        found = _PAIR.fullmatch(part)
        if found is None:
            raise ValueError(f"`{part[:80]}` is no label; write name=value, and a comma between two")
        labels[found[1]] = found[2]
    return labels
