"""The question whether a tool may act: what a person is shown of the call, and for whom the question is.

Which calls have to be approved: core/effects/approvals.py. Answers to questions of all types are in answers.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.core.effects.approvals import Request
from baton.core.failures import sanitised
from baton.core.failures.secret_names import REDACTED, is_secret
from baton.core.limits import DAY_MS
from baton.core.log.answers import APPROVAL, TYPES
from baton.core.log.records import Ask
from baton.core.log.state import State

LONGEST_TEXT = 500  # characters of one text among the arguments
MOST_ITEMS = 50  # of one list or object among them
DEEPEST = 6
MOST_SHOWN = 16_384  # bytes of all of them
MOST_SAID = 2_000  # characters of a title or a message
_ID_DIGITS = 12
_LEFT_OUT = "…"


def approval_of(
    state: State, slot: str, request: Request, says: Mapping[str, Any], expires_ms: int, now: int
) -> Ask:
    """The question of a step about a call. `says`: title, message and audience, as a document has them.

    Raises `ValueError` for an audience that is none.
    """
    kind, options = TYPES[APPROVAL]
    return Ask(
        # The digest makes it another question than that about any other call of this step.
        id=f"{state.lineage.branch}.{slot}.{request.digest[:_ID_DIGITS]}",
        kind=kind,
        type=APPROVAL,
        title=text_of(says.get("title", f"May `{request.tool}` act?"))[:MOST_SAID],
        message=text_of(says.get("message", f"{request.level} risk: {request.why}"))[:MOST_SAID],
        details=_details(request),
        options=options,
        risk=request.level,
        digest=request.digest,
        to=audience_of(says.get("to")),
        asked_at=now,
        expires_at=now + (expires_ms or DAY_MS),
    )


def text_of(value: Any) -> str:
    """Of an expression alone the value may be no text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def audience_of(said: Mapping[str, Any] | None, place: str = "to") -> str:
    """Whom it is for, as an `Ask` has it; empty for the starter. Raises `ValueError`."""
    for kind, name in (said or {}).items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{place}.{kind}: it must be a name")
        return f"{kind}:{name}"
    return ""


def shown(arguments: Any) -> Any:
    """Arguments as a person may see them: without secrets, long texts and lists cut, as the log keeps them."""
    return _shown("", arguments, DEEPEST)


def _details(request: Request) -> dict[str, Any]:
    arguments = shown(request.arguments)
    if len(msgspec.json.encode(arguments)) > MOST_SHOWN:
        arguments = dict.fromkeys(list(request.arguments)[:MOST_ITEMS], _LEFT_OUT)
    return {"tool": request.tool, "arguments": arguments, "risk": request.level, "why": request.why}


def _shown(name: str, value: Any, depth: int) -> Any:
    if is_secret(name) and value not in (None, "", False, True):
        return REDACTED
    if isinstance(value, str):
        text = sanitised(value[: 4 * LONGEST_TEXT])
        return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + _LEFT_OUT
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not depth:
        return _LEFT_OUT
    if isinstance(value, Mapping):
        items = list(value.items())
        found = {
            sanitised(str(key)[:LONGEST_TEXT]): _shown(str(key), one, depth - 1)
            for key, one in items[:MOST_ITEMS]
        }
        return found | ({_LEFT_OUT: f"{len(items) - MOST_ITEMS} more"} if len(items) > MOST_ITEMS else {})
    rest = [f"{_LEFT_OUT} {len(value) - MOST_ITEMS} more"] if len(value) > MOST_ITEMS else []
    return [*(_shown(name, one, depth - 1) for one in value[:MOST_ITEMS]), *rest]
