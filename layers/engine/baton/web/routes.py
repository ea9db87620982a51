"""The routes, as one table: what the API serves, refuses, allows and describes is read from here.

No behaviour: handlers are in handlers.py and handlers.py, dispatch in app.py, the description in openapi.py.
What a row has is in parameters.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.documents.parts.naming import ANY_WORKFLOW_NAME
from baton.core.failures.breakers import NAME_PATTERN as BREAKER_NAME
from baton.core.letters import LETTER_STATUSES
from baton.core.log.labels import MOST, NAME, VALUE
from baton.core.log.state import LISTS
from baton.core.outside import USER_PATTERN, USER_SHAPE
from baton.core.read.day_costs import BY, OF
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.requests.answers import INCIDENT_ID, INCIDENT_STATUSES
from baton.runtime.requests.operators import LETTER_ID
from baton.runtime.requests.queries import MAX_EVENTS
from baton.web import handlers
from baton.web.bodies.requests import (
    AcknowledgeBody,
    AnswerBody,
    CallbackBody,
    CancelBody,
    ClaimBody,
    ConfirmBody,
    DiscardAllBody,
    DiscardBody,
    ForkBody,
    IntentionBody,
    OpenBreakerBody,
    RedriveAllBody,
    RedriveBody,
    RemindBody,
    ResumeBody,
    RollbackBody,
    SignalBody,
    StartBody,
    UserBody,
    UserLimitBody,
)
from baton.web.parameters import (
    CALLBACKS,
    CONFIRMATIONS,
    CURSOR,
    DEFAULT_EVENTS,
    LIMIT,
    MAX_NUMBER,
    MOST_ANNOUNCED,
    WORKFLOW,
    Route,
    day,
    moment,
    one_of,
    whole,
    words,
)

EVENTS: tuple[Route[Any], ...] = (
    Route(
        method="POST", path="/events", id="sendEvents", handler=handlers.send_events, roles=("run",),
        summary="Events from outside, as CloudEvents: they start sagas, and are signals, by the rules of documents. A known event does nothing.",
        takes_text=True,
        takes={"application/cloudevents+json": "CloudEvent", "application/cloudevents-batch+json": "CloudEvents"},
        answers={202: "EventsTaken"},
    ),
)  # fmt: skip


_LETTER = words(
    "letter",
    LETTER_ID,
    "the id of a dead letter",
    "The `id` of a dead letter: that of its saga, if it has one.",
)
_LETTER_STATUS = one_of("status", LETTER_STATUSES, "Without it, those that are pending.")
_LETTER_SAGA = words("saga", SAGA_ID, "the id of a saga", "Only that of this saga.")
_LETTER_NODE = words("node", "[^/]{1,128}", "the name of a node", "Only those about this node.")
_REASON = words(
    "reason",
    ".{1,500}",
    "at most 500 characters",
    "Only those with this code, or with these words in their reason.",
)

LETTERS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/dead-letters", id="listDeadLetters", handler=handlers.list_letters, roles=("operate",),
        summary="What could not be delivered or read, the oldest first.",
        query=(_LETTER_STATUS, _LETTER_SAGA, _LETTER_NODE, _REASON, LIMIT, CURSOR), answers={200: "DeadLetterPage"},
    ),
    Route(
        method="POST", path="/dead-letters/redrive", id="redriveDeadLetters", handler=handlers.redrive_all,
        roles=("operate",),
        summary="Have workers look at the sagas of all pending dead letters that match again, or count these letters.",
        body=RedriveAllBody, answers={202: "RedrivenPage"},
    ),
    Route(
        method="POST", path="/dead-letters/discard", id="discardDeadLetters", handler=handlers.discard_all,
        roles=("operate",),
        summary="Take all pending dead letters that match off the list, or count them.",
        body=DiscardAllBody, answers={202: "DiscardedPage"},
    ),
    Route(
        method="GET", path="/dead-letters/{letter}", id="showDeadLetter", handler=handlers.show_letter, roles=("operate",),
        summary="One dead letter.",
        parameters=(_LETTER,), answers={200: "DeadLetter"},
    ),
    Route(
        method="POST", path="/dead-letters/{letter}/redrive", id="redriveDeadLetter", handler=handlers.redrive,
        roles=("operate",),
        summary="Have a worker look at the letter's saga again. Repeated, it changes nothing until the letter dies again.",
        parameters=(_LETTER,), body=RedriveBody, answers={202: "DeadLetter"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/dead-letters/{letter}/discard", id="discardDeadLetter", handler=handlers.discard,
        roles=("operate",),
        summary="Take a dead letter off the list; its record stays until it expires. Repeated, it changes nothing.",
        parameters=(_LETTER,), body=DiscardBody, answers={202: "DeadLetter"},
    ),
)  # fmt: skip


SCHEDULES: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/schedules", id="listSchedules", handler=handlers.list_schedules, roles=("read",),
        summary="Schedules by the names of their workflows.",
        query=(LIMIT, CURSOR), answers={200: "SchedulePage"},
    ),
    Route(
        method="GET", path="/schedules/{name}", id="showSchedule", handler=handlers.show_schedule, roles=("read",),
        summary="The schedule of a workflow, and what became of its last ticks.",
        parameters=(WORKFLOW,), answers={200: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/pause", id="pauseSchedule", handler=handlers.pause_schedule,
        roles=("operate",), summary="Start nothing more by a schedule until it is resumed. Repeated, it changes nothing.",
        parameters=(WORKFLOW,), answers={202: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/resume", id="resumeSchedule", handler=handlers.resume_schedule,
        roles=("operate",), summary="Go on with the next tick of a schedule. Repeated, it changes nothing.",
        parameters=(WORKFLOW,), answers={202: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/trigger", id="triggerSchedule", handler=handlers.trigger_schedule,
        roles=("run",), summary="Start a saga as the schedule would, now; a known key gives the same saga.",
        parameters=(WORKFLOW,), has_key=True, answers={201: "Started", 200: "Started"}, refusals=(422,),
    ),
)  # fmt: skip


_USER = words(
    "user", USER_PATTERN, USER_SHAPE, "Only this user, also one of whom nothing is known.", example="ada"
)

USERS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/users", id="listUsers", handler=handlers.list_users, roles=("operate",),
        summary="Users with what they have spent today, and what an operator has decided about each.",
        query=(_USER, CURSOR), answers={200: "UserPage"},
    ),
    Route(
        method="POST", path="/users/block", id="blockUser", handler=handlers.block_user, roles=("operate",),
        summary="Block a user: no saga of that user starts, and none goes on to spend. Repeated, it changes nothing.",
        body=UserBody, answers={202: "User"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/users/unblock", id="unblockUser", handler=handlers.unblock_user, roles=("operate",),
        summary="Unblock a user. Repeated, it changes nothing.",
        body=UserBody, answers={202: "User"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/users/limit", id="limitUser", handler=handlers.limit_user, roles=("operate",),
        summary="Give one user a limit of the day in the place of that of all users, or that of all users again.",
        body=UserLimitBody, answers={202: "User"}, refusals=(409,),
    ),
)  # fmt: skip


_SAGA = words("saga", SAGA_ID, "the id of a saga", "The id that the start answered with.")
_VERSION = whole("version", 1, MAX_NUMBER, None, "A version of the workflow.")
_SIGNAL = words(
    "name", "[^/]{1,128}", "the name of a signal", "A signal that a node of the workflow waits for."
)
_INCIDENT = words("incident", INCIDENT_ID, "the id of an incident", "The `id` of an incident in the list.")
_BREAKER = words(
    "breaker", BREAKER_NAME, "the name of a circuit breaker", "The target's name.", example="payments"
)
_DIGEST = words(
    "digest",
    "[0-9a-f]{64}",
    "the 64 hexadecimal digits of `cas://sha256/…`",
    "The 64 digits of its `cas://sha256/…`.",
)
_TOKEN = words("token", "[^/]+", "the token of a callback", "What the tool got as `context.callback_token`.")
_PROFILE = words(
    "profile",
    "[a-z][a-z0-9_]{0,31}",
    "the name of a profile of models",
    "A profile of `ModelProfiles`.",
    example="openai",
)
_NODE = words("node", "[^/]{1,128}", "the name of a node", "A node of the saga's workflow.", example="pay")

_STATUS = one_of(
    "status",
    tuple(LISTS),
    "A status, or `open` for all that has not ended, or `done` for all that has.",
    hints={"pending": "a list shows a new saga as `running`"},
)
_INCIDENTS = one_of(
    "status",
    INCIDENT_STATUSES,
    "Only open incidents, of these only those that no person has acknowledged, or only resolved ones.",
)
_OF_WORKFLOW = words(
    "workflow",
    ANY_WORKFLOW_NAME[1:-1],
    f"the name of a workflow, which matches {ANY_WORKFLOW_NAME}",
    "Only sagas of this workflow, or of this graph of its document.",
)
_SHOWN = words(
    "name",
    ANY_WORKFLOW_NAME[1:-1],
    "the name of a workflow",
    "The workflow's name; `NAME.GRAPH` for a graph of its document.",
    example="dinner",
)
_LABEL = words(
    "label",
    rf"{NAME}={VALUE}(,{NAME}={VALUE}){{0,{MOST - 1}}}",
    "a label, written name=value; a comma stands between two",
    "Only sagas with this label, or with all of several.",
    example="customer=4711",
)
_OF_SAGA = words(
    "saga", SAGA_ID, "the id of a saga", "Only the questions of this saga, whomever they are for."
)
_OF = one_of(
    "of",
    OF,
    "Whose bill: what models have cost, or what AWS has, estimated from the log of each saga. Without it that of models.",
)
_BY = one_of("by", BY, "Whose costs are added up; without it by workflow.")
_DAY = day("day", "The day (UTC) on which sagas last began to run, began to wait or ended; without it today.")
_SINCE = moment("since", "Only sagas whose `changed_at` is then or later.")
_AFTER = whole("after", 0, MAX_NUMBER, 0, "Only entries with a higher version.")
_STEPS = whole(
    "limit", 1, MAX_EVENTS, DEFAULT_EVENTS, "About how many nodes at most; none is parted from its entry."
)
_FROM = whole("after", 0, MAX_NUMBER, 0, "Where the part begins: the `next` of the part before.")
_EVENTS = whole("limit", 1, MAX_EVENTS, DEFAULT_EVENTS, "How many entries at most.")

ROUTES: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/health", id="health", handler=handlers.health, roles=(),
        summary="Whether the table answers.",
        answers={200: "Health"},
    ),
    Route(
        method="GET", path="/openapi.json", id="openapi", handler=handlers.openapi, roles=(),
        summary="This description.",
        answers={200: "Description"},
    ),
    Route(
        method="GET", path="/workflows", id="listWorkflows", handler=handlers.list_workflows, roles=("read",),
        summary="Workflows by name, each with its newest version.",
        query=(LIMIT, CURSOR), answers={200: "WorkflowPage"},
    ),
    Route(
        method="POST", path="/workflows", id="registerWorkflow", handler=handlers.register, roles=("operate",),
        summary="Compile and register a document; the same document again changes nothing.",
        takes_text=True, answers={201: "Registered", 200: "Registered"}, refusals=(409, 422),
    ),
    Route(
        method="GET", path="/workflows/{name}", id="showWorkflow", handler=handlers.show_workflow, roles=("read",),
        summary="The newest version of a workflow, and which others there are.",
        parameters=(_SHOWN,), answers={200: "WorkflowWithVersions"},
    ),
    Route(
        method="GET", path="/workflows/{name}/{version}", id="showWorkflowVersion",
        handler=handlers.show_workflow_version, roles=("read",),
        summary="One version of a workflow.",
        parameters=(_SHOWN, _VERSION), answers={200: "Workflow"},
    ),
    Route(
        method="GET", path="/sagas", id="listSagas", handler=handlers.list_sagas, roles=("read",),
        summary="Sagas, the latest change first.",
        query=(_STATUS, _OF_WORKFLOW, _LABEL, _SINCE, LIMIT, CURSOR), answers={200: "SagaPage"},
    ),
    Route(
        method="POST", path="/sagas", id="startSaga", handler=handlers.start, roles=("run",),
        summary="Start a saga; the same key and body again give the same saga.",
        body=StartBody, has_key=True, answers={201: "Started", 200: "Started"}, refusals=(404, 422),
    ),
    Route(
        method="POST", path="/intentions", id="intend", handler=handlers.intend, roles=("run",),
        summary="Start the deployment's workflow for what a user wants, in words; the same key and body again give the same saga.",
        body=IntentionBody, has_key=True, answers={201: "Intended", 200: "Intended"}, refusals=(404, 422),
    ),
    Route(
        method="GET", path="/sagas/{saga}", id="showSaga", handler=handlers.show_saga, roles=("read",),
        summary="Where a saga is, and its result.",
        parameters=(_SAGA,), answers={200: "Saga"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/events", id="listEvents", handler=handlers.list_events, roles=("read",),
        summary="A saga's log, in pages.",
        parameters=(_SAGA,), query=(_AFTER, _EVENTS), answers={200: "EventPage"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/live", id="showLive", handler=handlers.show_live, roles=("read",),
        summary="What its models are writing just now. The caller counts as a viewer for 30 s.",
        parameters=(_SAGA,), answers={200: "LiveTexts"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/values/{digest}", id="showValue", handler=handlers.show_value, roles=("read",),
        summary="A value that the saga's log names by `cas://sha256/…`; a large one comes in parts.",
        parameters=(_SAGA, _DIGEST), query=(_FROM,), answers={200: "StoredValue"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/cost", id="showCost", handler=handlers.show_cost, roles=("read",),
        summary="What a saga has cost so far, estimated from its log.",
        parameters=(_SAGA,), answers={200: "Cost"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/explain", id="showWay", handler=handlers.show_way, roles=("read",),
        summary="Which way a saga went: its nodes in the order in which they were settled, in pages.",
        parameters=(_SAGA,), query=(_AFTER, _STEPS), answers={200: "Way"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/explain/{node}", id="explainNode", handler=handlers.explain_node,
        roles=("read",),
        summary="Why a node ran, or did not, in each of its rounds.",
        parameters=(_SAGA, _NODE), answers={200: "Explanation"}, refusals=(413,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/cancel", id="cancelSaga", handler=handlers.cancel, roles=("run",),
        summary="Cancel a saga; again, it changes nothing.",
        parameters=(_SAGA,), body=CancelBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/signals/{name}", id="sendSignal", handler=handlers.signal,
        roles=("run", "answer"),
        summary="Send a signal; one with a known key changes nothing.",
        parameters=(_SAGA, _SIGNAL), body=SignalBody, has_key=True, answers={202: "Accepted"},
        refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/answer", id="answerQuestion", handler=handlers.answer,
        roles=("answer", "operate"),
        summary="Answer a question that is for the caller; the same answer again changes nothing.",
        parameters=(_SAGA,), body=AnswerBody, has_key=True, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/callbacks/{token}", id="callBack", handler=handlers.callback, roles=(), by_token=CALLBACKS,
        summary="Work elsewhere says that it is done, has failed or is alive; the same completion again changes nothing.",
        parameters=(_TOKEN,), body=CallbackBody, answers={202: "CalledBack"}, refusals=(409, 410),
    ),
    Route(
        method="POST", path="/models/{profile}/webhook", id="announceModel", handler=handlers.announced, roles=(),
        is_signed=True, most_bytes=MOST_ANNOUNCED,
        summary="A provider of models announces, signed, that a request in the background is over; again, it changes nothing.",
        parameters=(_PROFILE,), takes_text=True, answers={202: "Announced"}, refusals=(401,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/claim", id="claimQuestion", handler=handlers.claim,
        roles=("answer", "operate"),
        summary="Make a question of a group or a role the caller's own, or give it back. Repeated, it changes nothing.",
        parameters=(_SAGA,), body=ClaimBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/remind", id="remindOfQuestion", handler=handlers.remind,
        roles=("run", "answer", "operate"),
        summary="Have those whom a question is for told again, at most once in five minutes.",
        parameters=(_SAGA,), body=RemindBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/confirm", id="confirm", handler=handlers.confirm, roles=(), by_token=CONFIRMATIONS,
        summary="Answer the question that a link in a message is about; each link is good for one answer.",
        body=ConfirmBody, answers={202: "Accepted"}, refusals=(404, 409, 410),
    ),
    Route(
        method="POST", path="/sagas/{saga}/resume", id="resumeSaga", handler=handlers.resume, roles=("operate",),
        summary="Let a parked saga try again.",
        parameters=(_SAGA,), body=ResumeBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/forks", id="forkSaga", handler=handlers.fork, roles=("operate",),
        summary="Go on from an earlier version of the log in a new branch; a known key makes no second one.",
        parameters=(_SAGA,), body=ForkBody, has_key=True, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/rollback", id="rollBackSaga", handler=handlers.rollback, roles=("operate",),
        summary="Undo what a saga has done, or say what would be undone; a known key makes no second rollback.",
        parameters=(_SAGA,), body=RollbackBody, has_key=True,
        answers={200: "RollbackPlan", 202: "RollbackAccepted"}, refusals=(409,),
    ),
    Route(
        method="GET", path="/questions", id="listQuestions", handler=handlers.list_questions,
        roles=("read", "answer", "operate"),
        summary="Open questions that are for the caller, what expires first in front; or those of one saga.",
        query=(_OF_SAGA, LIMIT, CURSOR), answers={200: "QuestionPage"}, refusals=(404,),
    ),
    Route(
        method="GET", path="/incidents", id="listIncidents", handler=handlers.list_incidents, roles=("read",),
        summary="What went wrong and needs a person, the newest first.",
        query=(_INCIDENTS, LIMIT, CURSOR), answers={200: "IncidentPage"},
    ),
    Route(
        method="GET", path="/incidents/{incident}", id="showIncident", handler=handlers.show_incident, roles=("read",),
        summary="One incident.",
        parameters=(_INCIDENT,), answers={200: "Incident"},
    ),
    Route(
        method="POST", path="/incidents/{incident}/acknowledge", id="acknowledgeIncident",
        handler=handlers.acknowledge, roles=("operate",),
        summary="Say that the caller has an incident that is open. The last one counts; repeated, it changes nothing.",
        parameters=(_INCIDENT,), body=AcknowledgeBody, answers={202: "Incident"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/incidents/{incident}/resolve", id="resolveIncident", handler=handlers.resolve,
        roles=("operate",),
        summary="Resolve an incident: the caller has done something about it. Repeated, it changes nothing.",
        parameters=(_INCIDENT,), answers={202: "Incident"},
    ),
    Route(
        method="GET", path="/breakers", id="listBreakers", handler=handlers.list_breakers, roles=("read",),
        summary="Circuit breakers of which something is known, by their names.",
        query=(LIMIT, CURSOR), answers={200: "BreakerPage"},
    ),
    Route(
        method="GET", path="/breakers/{breaker}", id="showBreaker", handler=handlers.show_breaker, roles=("read",),
        summary="The state of a circuit breaker, its last failures and transitions.",
        parameters=(_BREAKER,), answers={200: "Breaker"},
    ),
    Route(
        method="POST", path="/breakers/{breaker}/open", id="openBreaker", handler=handlers.open_breaker,
        roles=("operate",), summary="Open a circuit breaker: no call goes through, for a while or until it is reset.",
        parameters=(_BREAKER,), body=OpenBreakerBody, answers={202: "Breaker"},
    ),
    Route(
        method="POST", path="/breakers/{breaker}/reset", id="resetBreaker", handler=handlers.reset_breaker,
        roles=("operate",), summary="Close a circuit breaker: calls go through.",
        parameters=(_BREAKER,), answers={202: "Breaker"},
    ),
    *SCHEDULES,
    *EVENTS,
    *LETTERS,
    *USERS,
    Route(
        method="GET", path="/costs", id="listCosts", handler=handlers.list_costs, roles=("operate",),
        summary="What models have cost the tenant on a day, by workflow, user or model; or what AWS has.",
        query=(_BY, _OF, _DAY, CURSOR), answers={200: "CostPage"},
    ),
    Route(
        method="GET", path="/error-budgets", id="listErrorBudgets", handler=handlers.list_error_budgets, roles=("read",),
        summary="How many sagas of each workflow have failed on a day, and how many more may.",
        query=(_DAY, CURSOR), answers={200: "ErrorBudgetPage"},
    ),
    Route(
        method="GET", path="/budget", id="showBudget", handler=handlers.show_budget, roles=("read",),
        summary="What the caller's sagas have spent today, and may spend.",
        answers={200: "Budget"},
    ),
    Route(
        method="GET", path="/tools", id="listTools", handler=handlers.list_tools, roles=("read",),
        summary="The tools that workflows can use.",
        answers={200: "Tools"},
    ),
    Route(
        method="GET", path="/node-types", id="listNodeTypes", handler=handlers.list_node_types, roles=("read",),
        summary="The kinds of nodes, and the JSON Schema of a workflow document.",
        answers={200: "NodeTypes"},
    ),
)  # fmt: skip
