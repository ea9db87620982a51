"""What can be in a log: the union of all kinds of event, and the entry around them.

A kind is declared in the file of its subject, such as step_events.py. Adding one or an optional field keeps `FORMAT`; changing the
meaning of what is there raises it.
How an entry becomes bytes is in codec.py.
"""

from __future__ import annotations

import msgspec

from baton.core.log.agents import AgentClosed, Called, CallsBegan, TurnBegan
from baton.core.log.child_events import ChildClosed, ChildOverdue, ChildrenAbandoned, ChildReported
from baton.core.log.failure_events import (
    AttemptFailed,
    NoticeDue,
    NoticesSent,
    QuestionClaimed,
    QuestionClosed,
    QuestionEscalated,
    StepHeld,
    StrategyChosen,
)
from baton.core.log.maps import ItemsBegan, ItemsGathered, MapClosed, MapEnded, MapStopped
from baton.core.log.node_events import JoinFired, NodeAdmitted, NodeBegan, NodePassed, NodeSkipped
from baton.core.log.open_events import (
    AgentBegan,
    CallbackHeartbeat,
    CallbackOpened,
    ChildOpened,
    MapBegan,
    Opens,
    QuestionOpened,
    ReplanBegan,
    WaitClosed,
    WaitOpened,
)
from baton.core.log.records import (
    Ask,
    Blamed,
    Failure,
    Notice,
    Response,
    Shown,
    Token,
    Untold,
    Value,
    failed_with,
)
from baton.core.log.replans import AlternativeBegan, ReplanEnded
from baton.core.log.settling import Gives, Settles
from baton.core.log.step_events import StepFailed, StepInterrupted, StepSucceeded
from baton.core.log.undo_events import (
    ChildUndone,
    StepStopped,
    UndoBegan,
    UndoPassed,
    UndoSetAside,
    UndoStepBegan,
    UndoTakenUp,
)
from baton.core.log.undos import NotUndone, Undone, UndoStep
from baton.core.log.whole_events import (
    CancelRequested,
    Forked,
    GaveUp,
    LimitReached,
    Parked,
    Resumed,
    Revived,
    SagaEnded,
    SagaStarted,
    SignalReceived,
)

__all__ = [  # what is declared in the files of its subjects, or records.py
    "AgentBegan",
    "AgentClosed",
    "AlternativeBegan",
    "Ask",
    "AttemptFailed",
    "Blamed",
    "CallbackHeartbeat",
    "CallbackOpened",
    "Called",
    "CallsBegan",
    "CancelRequested",
    "ChildClosed",
    "ChildOpened",
    "ChildOverdue",
    "ChildReported",
    "ChildUndone",
    "ChildrenAbandoned",
    "Failure",
    "Forked",
    "GaveUp",
    "Gives",
    "ItemsBegan",
    "ItemsGathered",
    "JoinFired",
    "LimitReached",
    "MapBegan",
    "MapClosed",
    "MapEnded",
    "MapStopped",
    "NodeAdmitted",
    "NodeBegan",
    "NodePassed",
    "NodeSkipped",
    "NotUndone",
    "Notice",
    "NoticeDue",
    "NoticesSent",
    "Opens",
    "Parked",
    "QuestionClaimed",
    "QuestionClosed",
    "QuestionEscalated",
    "QuestionOpened",
    "ReplanBegan",
    "ReplanEnded",
    "Response",
    "Resumed",
    "Revived",
    "SagaEnded",
    "SagaStarted",
    "Settles",
    "Shown",
    "SignalReceived",
    "StepFailed",
    "StepHeld",
    "StepInterrupted",
    "StepStopped",
    "StepSucceeded",
    "StrategyChosen",
    "Token",
    "TurnBegan",
    "UndoBegan",
    "UndoPassed",
    "UndoSetAside",
    "UndoStep",
    "UndoStepBegan",
    "UndoTakenUp",
    "Undone",
    "Untold",
    "Value",
    "WaitClosed",
    "WaitOpened",
    "failed_with",
]

FORMAT = 1


Opening = WaitOpened | ChildOpened | QuestionOpened | CallbackOpened | AgentBegan | MapBegan
Closing = StepSucceeded | NodePassed | WaitClosed | ChildClosed | AgentClosed | MapClosed
Moving = (
    TurnBegan
    | CallsBegan
    | AlternativeBegan
    | ItemsBegan
    | ItemsGathered
    | MapStopped
    | MapEnded
    | ChildOverdue
)
Event = (
    SagaStarted
    | StepSucceeded
    | StepFailed
    | AttemptFailed
    | StrategyChosen
    | StepHeld
    | QuestionClosed
    | QuestionEscalated
    | QuestionClaimed
    | NoticeDue
    | NoticesSent
    | StepInterrupted
    | NodeSkipped
    | JoinFired
    | NodeAdmitted
    | NodeBegan
    | NodePassed
    | WaitOpened
    | WaitClosed
    | QuestionOpened
    | CallbackOpened
    | CallbackHeartbeat
    | AgentBegan
    | TurnBegan
    | CallsBegan
    | AgentClosed
    | MapBegan
    | ItemsBegan
    | ItemsGathered
    | MapStopped
    | MapClosed
    | MapEnded
    | ReplanBegan
    | AlternativeBegan
    | ReplanEnded
    | ChildOpened
    | ChildOverdue
    | ChildReported
    | ChildClosed
    | ChildrenAbandoned
    | SignalReceived
    | CancelRequested
    | Revived
    | GaveUp
    | LimitReached
    | Parked
    | Resumed
    | UndoBegan
    | UndoStepBegan
    | UndoPassed
    | UndoSetAside
    | UndoTakenUp
    | ChildUndone
    | StepStopped
    | Forked
    | SagaEnded
)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One append: its events, and who wrote it when.

    `epoch` is that of the lease under which a worker wrote it, 0 for any other writer. By epoch and invocation
    a writer that repeats a put without having seen the answer recognises the entry as its own.
    """

    format: int = FORMAT
    version: int
    branch: int = 0
    at: int
    epoch: int = 0
    invocation: str
    cold: bool = False
    traceparent: str = ""
    events: tuple[Event, ...]
