"""The tables of docs/effects.md, made of the data in core/effects/keys.py and core/failures/codes.py."""

from __future__ import annotations

from baton.core.effects.keys import STRATEGIES, Strategy
from baton.core.failures.codes import BY_CODE, CLASSES, DOUBTFUL


def key_strategies() -> str:
    """Each strategy, and what is in its key besides tenant and tool."""
    lines = [
        "| `Key.` | two calls are the same | user | saga | parameters | further |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(name, strategy) for name, strategy in STRATEGIES.items()]
    return "\n".join(lines)


def _row(name: str, strategy: Strategy) -> str:
    saga = "yes" if strategy.saga else ""
    cells = (f"`{name}`", strategy.says, strategy.user, saga, strategy.parameters, strategy.further)
    return f"| {' | '.join(cells)} |"


def effect_doubts() -> str:
    """Which failures leave a doubt."""
    lines = ["| failure | may it have happened? |", "|---|---|"]
    lines += [f"| class `{name}` | {_word(name in DOUBTFUL)} |" for name in CLASSES]
    lines += [f"| code `{code}` | {_word(doubt)} |" for code, doubt in BY_CODE.items()]
    return "\n".join(lines)


def _word(doubt: bool) -> str:
    return "yes: `verify` or a person looks first" if doubt else "no: it is tried again"
