"""The routes of dead letters: rows of the table in routes.py."""

from __future__ import annotations

from typing import Any

from baton.core.letters import STATUSES
from baton.runtime.desks.letter_desk import LETTER_ID
from baton.runtime.engine.request import SAGA_ID
from baton.web import commands, reads
from baton.web.bodies.letter_requests import DiscardAllBody, DiscardBody, RedriveAllBody, RedriveBody
from baton.web.parameters import one_of, words
from baton.web.route import CURSOR, LIMIT, Route

_LETTER = words(
    "letter",
    LETTER_ID,
    "the id of a dead letter",
    "The `id` of a dead letter: that of its saga, if it has one.",
)
_STATUS = one_of("status", STATUSES, "Without it, those that are pending.")
_SAGA = words("saga", SAGA_ID, "the id of a saga", "Only that of this saga.")
_NODE = words("node", "[^/]{1,128}", "the name of a node", "Only those about this node.")
_REASON = words(
    "reason",
    ".{1,500}",
    "at most 500 characters",
    "Only those with this code, or with these words in their reason.",
)

LETTERS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/dead-letters", id="listDeadLetters", handler=reads.list_letters, roles=("operate",),
        summary="What could not be delivered or read, the oldest first.",
        query=(_STATUS, _SAGA, _NODE, _REASON, LIMIT, CURSOR), answers={200: "DeadLetterPage"},
    ),
    Route(
        method="POST", path="/dead-letters/redrive", id="redriveDeadLetters", handler=commands.redrive_all,
        roles=("operate",),
        summary="Have workers look at the sagas of all pending dead letters that match again, or count these letters.",
        body=RedriveAllBody, answers={202: "RedrivenPage"},
    ),
    Route(
        method="POST", path="/dead-letters/discard", id="discardDeadLetters", handler=commands.discard_all,
        roles=("operate",),
        summary="Take all pending dead letters that match off the list, or count them.",
        body=DiscardAllBody, answers={202: "DiscardedPage"},
    ),
    Route(
        method="GET", path="/dead-letters/{letter}", id="showDeadLetter", handler=reads.show_letter, roles=("operate",),
        summary="One dead letter.",
        parameters=(_LETTER,), answers={200: "DeadLetter"},
    ),
    Route(
        method="POST", path="/dead-letters/{letter}/redrive", id="redriveDeadLetter", handler=commands.redrive,
        roles=("operate",),
        summary="Have a worker look at the letter's saga again. Repeated, it changes nothing until the letter dies again.",
        parameters=(_LETTER,), body=RedriveBody, answers={202: "DeadLetter"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/dead-letters/{letter}/discard", id="discardDeadLetter", handler=commands.discard,
        roles=("operate",),
        summary="Take a dead letter off the list; its record stays until it expires. Repeated, it changes nothing.",
        parameters=(_LETTER,), body=DiscardBody, answers={202: "DeadLetter"},
    ),
)  # fmt: skip
