"""What the engine needs from the outside, as Protocols; one group of calls per technology.

No behaviour here. Everything is synchronous: the runner moves calls off its event loop through
`Offload`. All times are UTC epoch milliseconds. Any call may raise `Throttled` (nothing happened, try
again after a pause) or `StoreUnavailable` (it may have happened).
"""

from __future__ import annotations

from baton.ports.log import Head, Listed, Log, Place, Record, Release, SagaRef, Wake
from baton.ports.messages import DeadLetters, Invoker, Message, Queue
from baton.ports.process import Clock, Entropy, NoRoom, Offload, Performer, Sandbox, StepContext, StepFailure
from baton.ports.stores import Blobs, Definition, Definitions, Rates

__all__ = [
    "Blobs",
    "Clock",
    "DeadLetters",
    "Definition",
    "Definitions",
    "Entropy",
    "Head",
    "Invoker",
    "Listed",
    "Log",
    "Message",
    "NoRoom",
    "Offload",
    "Performer",
    "Place",
    "Queue",
    "Rates",
    "Record",
    "Release",
    "SagaRef",
    "Sandbox",
    "StepContext",
    "StepFailure",
    "Wake",
]
