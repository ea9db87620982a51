"""What the engine needs from the outside, as Protocols; a file for each concern.

No behaviour here. Everything is synchronous: the runner moves calls off its event loop through
`Offload`. All times are UTC epoch milliseconds. Any call may raise `Throttled` (nothing happened, try
again after a pause) or `StoreUnavailable` (it may have happened).
"""

from __future__ import annotations

from baton.ports.blobs import Blobs
from baton.ports.budgets import Account, Answer, Budgets, Change, Drawn, Reservation, Sums
from baton.ports.definitions import Definition, Definitions, Rates
from baton.ports.effects import Effect, Effects
from baton.ports.inbox import Inbox, Report
from baton.ports.limits import StoreLimits
from baton.ports.live import Live, LiveTexts
from baton.ports.log import (
    LANES,
    PARKED,
    SWEEP,
    TIMER,
    WORK,
    Appended,
    Due,
    Head,
    Listed,
    Log,
    Place,
    Record,
    Release,
    SagaRef,
    Wake,
)
from baton.ports.messages import UNKNOWN, Cause, DeadLetters, Invoker, Message, Queue, tenant_of
from baton.ports.notices import Incident, Incidents, NoticeRecord, Notices, Telling
from baton.ports.process import (
    Blocked,
    Clock,
    Entropy,
    Meter,
    NoRoom,
    Offload,
    Performer,
    Pulse,
    Sandbox,
    StepContext,
    StepFailure,
    Watch,
)
from baton.ports.questions import QuestionRow, Questions, Spot
from baton.ports.store import Store

__all__ = [
    "LANES",
    "PARKED",
    "SWEEP",
    "TIMER",
    "UNKNOWN",
    "WORK",
    "Account",
    "Answer",
    "Appended",
    "Blobs",
    "Blocked",
    "Budgets",
    "Cause",
    "Change",
    "Clock",
    "DeadLetters",
    "Definition",
    "Definitions",
    "Drawn",
    "Due",
    "Effect",
    "Effects",
    "Entropy",
    "Head",
    "Inbox",
    "Incident",
    "Incidents",
    "Invoker",
    "Listed",
    "Live",
    "LiveTexts",
    "Log",
    "Message",
    "Meter",
    "NoRoom",
    "NoticeRecord",
    "Notices",
    "Offload",
    "Performer",
    "Place",
    "Pulse",
    "QuestionRow",
    "Questions",
    "Queue",
    "Rates",
    "Record",
    "Release",
    "Report",
    "Reservation",
    "SagaRef",
    "Sandbox",
    "Spot",
    "StepContext",
    "StepFailure",
    "Store",
    "StoreLimits",
    "Sums",
    "Telling",
    "Wake",
    "Watch",
    "tenant_of",
]
