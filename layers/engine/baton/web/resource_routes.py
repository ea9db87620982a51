"""Rows of the route table for events, dead letters, schedules, users and facts: what is no saga.

The whole table, with those of sagas, is in routes.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.graph.graph import TAG_NAME
from baton.core.letters import LETTER_STATUSES
from baton.core.outside import USER_PATTERN, USER_SHAPE
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.requests.operators import LETTER_ID
from baton.web import handlers
from baton.web.bodies import requests as bodies
from baton.web.bodies import users
from baton.web.bodies import versions as of_versions
from baton.web.parameters import (
    CURSOR,
    LIMIT,
    WORKFLOW,
    Route,
    pattern_parameter,
    word_parameter,
)

EVENTS: tuple[Route[Any], ...] = (
    Route(
        method="POST", path="/events", id="sendEvents", handler=handlers.send_events, roles=("run",),
        summary="Send events from outside as CloudEvents. The rules in workflow documents start or signal sagas. A repeated event has no effect.",
        takes_text=True,
        takes={"application/cloudevents+json": "CloudEvent", "application/cloudevents-batch+json": "CloudEvents"},
        answers={202: "EventsTaken"},
    ),
)  # fmt: skip


_LETTER = pattern_parameter(
    "letter",
    LETTER_ID,
    "the id of a dead letter",
    "Identifier of a dead letter. It equals the identifier of the letter's saga, if the letter has one.",
)
_LETTER_STATUS = word_parameter("status", LETTER_STATUSES, "Status of the dead letters. Default: pending.")
_LETTER_SAGA = pattern_parameter(
    "saga", SAGA_ID, "the id of a saga", "Return only the dead letter of this saga."
)
_LETTER_NODE = pattern_parameter(
    "node", "[^/]{1,128}", "the name of a node", "Return only dead letters about this node."
)
_REASON = pattern_parameter(
    "reason",
    ".{1,500}",
    "at most 500 characters",
    "Return only dead letters with this code, or with this text in their reason.",
)

LETTERS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/dead-letters", id="listDeadLetters", handler=handlers.list_letters, roles=("operate",),
        summary="List dead letters, oldest first.",
        query=(_LETTER_STATUS, _LETTER_SAGA, _LETTER_NODE, _REASON, LIMIT, CURSOR), answers={200: "DeadLetterPage"},
    ),
    Route(
        method="POST", path="/dead-letters/redrive", id="redriveDeadLetters", handler=handlers.redrive_all,
        roles=("operate",),
        summary="Redrive all matching pending dead letters, or count them.",
        body=bodies.RedriveAllBody, answers={202: "RedrivenPage"},
    ),
    Route(
        method="POST", path="/dead-letters/discard", id="discardDeadLetters", handler=handlers.discard_all,
        roles=("operate",),
        summary="Discard all matching pending dead letters, or count them.",
        body=bodies.DiscardAllBody, answers={202: "DiscardedPage"},
    ),
    Route(
        method="GET", path="/dead-letters/{letter}", id="showDeadLetter", roles=("operate",),
        handler=lambda ask: ask.service.letters.show(ask.path["letter"]),
        summary="Retrieve a dead letter.",
        parameters=(_LETTER,), answers={200: "DeadLetter"},
    ),
    Route(
        method="POST", path="/dead-letters/{letter}/redrive", id="redriveDeadLetter", handler=handlers.redrive,
        roles=("operate",),
        summary="Redrive a dead letter: a worker processes its saga again. A repeated request has no effect "
            "until the letter dies again.",
        parameters=(_LETTER,), body=bodies.RedriveBody, answers={202: "DeadLetter"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/dead-letters/{letter}/discard", id="discardDeadLetter", handler=handlers.discard,
        roles=("operate",),
        summary="Discard a dead letter. Its record is kept until it expires. A repeated request has no effect.",
        parameters=(_LETTER,), body=bodies.DiscardBody, answers={202: "DeadLetter"},
    ),
)  # fmt: skip


_TAG = pattern_parameter("tag", TAG_NAME[1:-1], "the name of a tag", "Name of the tag.", example="main")

VERSIONS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/workflows/{name}/tags/{tag}", id="showTag", roles=("read",),
        handler=lambda ask: ask.service.versions.tag(ask.path["name"], ask.path["tag"]),
        summary="Retrieve a tag of a workflow with its history.",
        parameters=(WORKFLOW, _TAG), answers={200: "WorkflowTag"},
    ),
    Route(
        method="POST", path="/workflows/{name}/tags/{tag}", id="moveTag", handler=handlers.move_tag, roles=("operate",),
        summary="Set a tag to a version of the workflow, or delete it. A repeated request has no effect.",
        parameters=(WORKFLOW, _TAG), body=of_versions.TagBody, answers={202: "WorkflowTag"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/workflows/{name}/patches", id="patchWorkflow", handler=handlers.patch_workflow,
        roles=("operate",),
        summary="Register the newest version of a workflow with a JSON Patch as its next version, or compile it. A repeated "
            "request has no effect.",
        parameters=(WORKFLOW,), body=of_versions.PatchWorkflowBody, answers={201: "Registered", 200: "Registered"},
        refusals=(409, 422),
    ),
    Route(
        method="POST", path="/sagas/migrate", id="migrateSagas", handler=handlers.migrate_many, roles=("operate",),
        summary="Migrate the open sagas of a workflow to another version of it, or say which can be. A repeated request has no effect.",
        body=of_versions.MigrateManyBody, answers={202: "SteeredPage"}, refusals=(404,),
    ),
)  # fmt: skip


SCHEDULES: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/schedules", id="listSchedules", roles=("read",),
        handler=lambda ask: ask.service.schedules.page(**ask.query),
        summary="List schedules, ordered by workflow name.",
        query=(LIMIT, CURSOR), answers={200: "SchedulePage"},
    ),
    Route(
        method="GET", path="/schedules/{name}", id="showSchedule", roles=("read",),
        handler=lambda ask: ask.service.schedules.show(ask.path["name"]),
        summary="Retrieve the schedule of a workflow and the results of its last ticks.",
        parameters=(WORKFLOW,), answers={200: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/pause", id="pauseSchedule", roles=("operate",),
        handler=lambda ask: ask.service.schedules.pause(ask.path["name"]),
        summary="Pause a schedule. It starts no sagas until it is resumed. A repeated request has no effect.",
        parameters=(WORKFLOW,), answers={202: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/resume", id="resumeSchedule", roles=("operate",),
        handler=lambda ask: ask.service.schedules.resume(ask.path["name"]),
        summary="Resume a schedule with its next tick. A repeated request has no effect.",
        parameters=(WORKFLOW,), answers={202: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/trigger", id="triggerSchedule", handler=handlers.trigger_schedule,
        roles=("run",), summary="Start a saga of the schedule immediately. Requests with the same idempotency key return the "
            "same saga.",
        parameters=(WORKFLOW,), has_key=True, answers={201: "Started", 200: "Started"}, refusals=(422,),
    ),
)  # fmt: skip


_USER = pattern_parameter(
    "user",
    USER_PATTERN,
    USER_SHAPE,
    "Return only this user, including a user without records.",
    example="ada",
)

USERS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/users", id="listUsers", roles=("operate",),
        handler=lambda ask: ask.service.users.page(**ask.query),
        summary="List users with today's spending and the operators' decisions about them.",
        query=(_USER, CURSOR), answers={200: "UserPage"},
    ),
    Route(
        method="POST", path="/users/block", id="blockUser", handler=handlers.block_user, roles=("operate",),
        summary="Block a user. No saga of the user starts or spends. A repeated request has no effect.",
        body=users.UserBody, answers={202: "User"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/users/unblock", id="unblockUser", handler=handlers.unblock_user, roles=("operate",),
        summary="Unblock a user. A repeated request has no effect.",
        body=users.UserBody, answers={202: "User"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/users/limit", id="limitUser", handler=handlers.limit_user, roles=("operate",),
        summary="Set the daily limit of a user, or restore the limit of all users.",
        body=users.UserLimitBody, answers={202: "User"}, refusals=(409,),
    ),
)  # fmt: skip


_FACTS_OF = pattern_parameter("user", USER_PATTERN, USER_SHAPE, "User whose facts are listed.", example="ada")

FACTS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/users/facts", id="listFacts", roles=("operate",), handler=handlers.list_facts,
        summary="List the facts that sagas have kept about a user.",
        query=(_FACTS_OF, LIMIT, CURSOR), answers={200: "FactPage"},
    ),
    Route(
        method="POST", path="/users/forget", id="forgetUser", handler=handlers.forget_user, roles=("operate",),
        summary="Erase the facts of a user: their texts and their vectors. Repeat the request while `more` is true.",
        body=users.UserFactsBody, answers={202: "FactsErased"},
    ),
)  # fmt: skip
