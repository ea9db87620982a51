"""Protocols through which the engine reaches the outside world, one file for each concern.

This package holds no behaviour. Every port is synchronous: the runner moves calls off its event loop through
`Offload`. All times are UTC epoch milliseconds. Any call may raise `Throttled` (nothing happened, try again
after a pause) or `StoreUnavailable` (the call may have taken effect).
"""

from __future__ import annotations

from baton.ports.budgets import Account, BudgetAnswer, Budgets, Drawn, Reservation, ReservationChange, Sums
from baton.ports.log import (
    LANES,
    PARKED,
    SWEEP,
    TIMER,
    WORK,
    Appended,
    Blobs,
    Due,
    Head,
    Inbox,
    Listed,
    Live,
    LiveTexts,
    Log,
    Place,
    Record,
    Release,
    Report,
    SagaRef,
    StoreLimits,
    Wake,
)
from baton.ports.people import (
    Incident,
    Incidents,
    NoticeRecord,
    Notices,
    QuestionRow,
    Questions,
    Spot,
    Telling,
)
from baton.ports.process import (
    UNKNOWN,
    Blocked,
    Builds,
    CallJournal,
    Clock,
    CodeBuild,
    DeadLetters,
    DeadMessageCause,
    DeployedBuilds,
    Entropy,
    HeldMoney,
    Hold,
    HoldRequest,
    Invoker,
    Message,
    Meter,
    NoRoom,
    Offload,
    Performer,
    Pulse,
    Queue,
    Sandbox,
    StepContext,
    StepFailure,
    ThreadStore,
    UnitLog,
    Watch,
    Watchdog,
    tenant_of,
)
from baton.ports.records import CheckpointRow, Checkpoints, Definition, Definitions, Effect, Effects, Rates
from baton.ports.store import Store

__all__ = [
    "LANES", "PARKED", "SWEEP", "TIMER", "UNKNOWN", "WORK", "Account", "Appended", "Blobs", "Blocked",
    "BudgetAnswer", "Budgets", "Builds", "CallJournal", "CheckpointRow", "Checkpoints", "Clock",
    "CodeBuild", "DeadLetters", "DeadMessageCause", "Definition", "Definitions", "DeployedBuilds", "Drawn",
    "Due", "Effect", "Effects", "Entropy", "Head", "HeldMoney", "Hold", "HoldRequest", "Inbox", "Incident",
    "Incidents", "Invoker", "Listed", "Live", "LiveTexts", "Log", "Message", "Meter", "NoRoom",
    "NoticeRecord", "Notices", "Offload", "Performer", "Place", "Pulse", "QuestionRow", "Questions",
    "Queue", "Rates", "Record", "Release", "Report", "Reservation", "ReservationChange", "SagaRef",
    "Sandbox", "Spot", "StepContext", "StepFailure", "Store", "StoreLimits", "Sums", "Telling",
    "ThreadStore", "UnitLog", "Wake", "Watch", "Watchdog", "tenant_of",
]  # fmt: skip
