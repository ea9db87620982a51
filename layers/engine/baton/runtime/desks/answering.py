"""Answering an open question: who may, whether the answer is one, and the entry with it. Loaded with the first answer.

Which answers there are is in core/log/answers.py; what else is done about a question, in questions.py; answers by a link, in confirming.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from baton.core.log.answers import (
    MAX_ARGUMENTS,
    WHOLE,
    Answer,
    about_parking,
    already_answered,
    answer_key,
    asked,
    check_answer,
    is_answer_to,
    is_answered,
    question,
    refusal,
    tool_asked_about,
)
from baton.core.log.events import Ask, Event, SignalReceived
from baton.core.log.folding.signal_folds import fingerprint, signal_key
from baton.core.log.state import ANSWER, State, node_of
from baton.errors import Forbidden, InvalidInput, KeyReused, TooLarge
from baton.runtime.desks.incidents import IncidentDesk
from baton.runtime.engine.request import Opened, Request

Check = Callable[[State, Ask, int], None]
"""What is asked of an answer in the place of who may give it."""


async def give(
    request: Request, incidents: IncidentDesk, saga: str, answer: Answer, key: str, check: Check | None
) -> dict[str, Any]:
    """See `Service.answer`."""
    opened = await request.open(saga)
    if len(msgspec.json.encode(answer.arguments)) > MAX_ARGUMENTS:
        raise TooLarge(f"the arguments of an answer have at most {MAX_ARGUMENTS} bytes")
    value, blob = request.unstored(opened.history, answer.payload(), "an answer")
    unique = answer_key(answer.ask, key)
    remembered = signal_key(ANSWER, unique)

    def is_known(state: State) -> bool:
        if check is not None:
            return False
        _refuse_others(request, state, answer.ask)
        known = state.keys.get(remembered)
        if key and known is not None and known != fingerprint(value):
            raise KeyReused(f"question `{answer.ask}` was answered otherwise under this key")
        if fingerprint(value) in _said(state, answer.ask):
            return True
        if state.ended is not None and is_answered(state, answer.ask):
            raise already_answered(answer.ask)  # which says more than that the saga has ended
        return False

    def make(state: State, now: int) -> Event | None:
        slot, ask = question(state, answer.ask, now)
        if check is not None:
            check(state, ask, now)
        _refuse_unfit(request, opened, state, slot, ask, answer)
        return SignalReceived(name=ANSWER, key=unique, payload=value, by=request.caller.by, at=now)

    failing = opened.history.state.failing.items()
    node = next((node_of(slot)[0] for slot, one in failing if one.ask and one.ask.id == answer.ask), "")
    parking = about_parking(opened.history.state)
    answered = await request.append(opened, make, is_known, blob, value.ref)
    if node or (parking is not None and parking.id == answer.ask):
        await incidents.resolve_all(saga, node)
    return answered


def _said(state: State, question: str) -> set[str]:
    """The fingerprints of the answers that have come to the question, under whatever key."""
    known = ((key.partition("/"), said) for key, said in state.keys.items())
    return {said for (name, _, key), said in known if name == ANSWER and is_answer_to(key, question)}


def _refuse_others(request: Request, state: State, question: str) -> None:
    """Raises `Forbidden` where the question is open, and not for the caller."""
    caller = request.caller
    for _, ask in asked(state):
        if ask.id == question and (why := refusal(state, ask, caller.user, caller.roles, caller.groups)):
            raise Forbidden(why)


def _refuse_unfit(
    request: Request, opened: Opened, state: State, slot: str, ask: Ask, answer: Answer
) -> None:
    """Raises `InvalidInput` with all that is wrong with the answer."""
    node = None if slot == WHOLE else opened.program.node_at(state, slot)
    failing = state.failing.get(slot)
    asked_about = "" if node is None or failing is None else tool_asked_about(node, failing)
    tool = request.engine.tools.get(asked_about)
    problems = check_answer(
        ask,
        node,
        tool.parameters if tool is not None else {},
        answer,
        tool.result if tool is not None and node is not None and node.callback is None else None,
    )
    if problems:
        raise InvalidInput(f"at {problems[0].path}: {problems[0].message}", problems)
