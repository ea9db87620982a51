"""The routes of the HTTP API as Python calls, for the commands and the demo: one class of all families.

A call stands in the file of its family.
"""

from __future__ import annotations

from baton.client.breakers import BreakerCalls
from baton.client.costs import CostCalls
from baton.client.letters import LetterCalls
from baton.client.outside import EventCalls
from baton.client.people import PeopleCalls
from baton.client.sagas import SagaCalls
from baton.client.schedules import ScheduleCalls
from baton.client.users import UserCalls
from baton.client.workflows import WorkflowCalls


class Api(
    SagaCalls,
    PeopleCalls,
    CostCalls,
    BreakerCalls,
    LetterCalls,
    ScheduleCalls,
    EventCalls,
    UserCalls,
    WorkflowCalls,
):
    """One API for one caller. Every call raises `Failed`, which says how the command ends."""
