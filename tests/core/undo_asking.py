"""What people say of steps in doubt, for tests of undoing."""

from __future__ import annotations

from typing import Any

from baton.core.log import events as ev
from baton.core.log.questions import open_questions
from baton.core.log.state import ANSWER
from tests.core.build import Saga

CANCEL_WITH_UNDO = ev.CancelRequested(reason="", by="ada", at=1, grace_ms=0, undo=True)


def asked(saga: Saga) -> list[str]:
    """The slots about which a person is asked."""
    return [slot for slot, _ in open_questions(saga.state)]


def say(saga: Saga, slot: str, action: str, **more: Any) -> None:
    """A person answers the question about a slot, and the saga goes on."""
    [ask] = [ask for name, ask in open_questions(saga.state) if name == slot]
    payload = ev.Value(v={"ask": ask.id, "action": action, **more})
    saga.put(
        ev.SignalReceived(name=ANSWER, key=ask.id, payload=payload, by="bob", at=saga.now), invocation="api"
    )
    saga.go()


def expire(saga: Saga) -> None:
    """No person answers within the time of the questions that are open."""
    saga.now = max(ask.expires_at for _, ask in open_questions(saga.state))
    saga.go()


def incidents(saga: Saga) -> list[str]:
    """The codes of the incidents of which the people on call are to be told; then they are told, and the saga goes on."""
    codes = [one.code for one in saga.state.outbox.due if one.incident and one.to == "on_call"]
    saga.note_told()
    saga.go()
    return codes
