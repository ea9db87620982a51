"""The routes, as one table: what the API serves, refuses, allows and describes is read from here.

No behaviour: handlers are in reads.py and commands.py, dispatch in app.py, the description in openapi.py. What a row has is in route.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.documents.parts.naming import ANY_WORKFLOW_NAME
from baton.core.failures.breakers import NAME_PATTERN as BREAKER_NAME
from baton.core.log.labels import MOST, NAME, VALUE
from baton.core.log.status import LISTS
from baton.core.read.day_costs import BY, OF
from baton.runtime.desks.incidents import INCIDENT_ID, STATUSES
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.queries import MAX_EVENTS
from baton.web import commands, reads
from baton.web.bodies.incident_requests import AcknowledgeBody
from baton.web.bodies.people_requests import AnswerBody, ClaimBody, ConfirmBody, RemindBody
from baton.web.bodies.requests import (
    CallbackBody,
    CancelBody,
    ForkBody,
    IntentionBody,
    OpenBreakerBody,
    ResumeBody,
    SignalBody,
    StartBody,
)
from baton.web.bodies.rollback_body import RollbackBody
from baton.web.event_routes import EVENTS
from baton.web.letter_routes import LETTERS
from baton.web.parameters import day, moment, one_of, whole, words
from baton.web.route import (
    CALLBACKS,
    CONFIRMATIONS,
    CURSOR,
    DEFAULT_EVENTS,
    LIMIT,
    MAX_NUMBER,
    MOST_ANNOUNCED,
    Route,
)
from baton.web.schedule_routes import SCHEDULES
from baton.web.user_routes import USERS

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
    STATUSES,
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
        method="GET", path="/health", id="health", handler=reads.health, roles=(),
        summary="Whether the table answers.",
        answers={200: "Health"},
    ),
    Route(
        method="GET", path="/openapi.json", id="openapi", handler=reads.openapi, roles=(),
        summary="This description.",
        answers={200: "Description"},
    ),
    Route(
        method="GET", path="/workflows", id="listWorkflows", handler=reads.list_workflows, roles=("read",),
        summary="Workflows by name, each with its newest version.",
        query=(LIMIT, CURSOR), answers={200: "WorkflowPage"},
    ),
    Route(
        method="POST", path="/workflows", id="registerWorkflow", handler=commands.register, roles=("operate",),
        summary="Compile and register a document; the same document again changes nothing.",
        takes_text=True, answers={201: "Registered", 200: "Registered"}, refusals=(409, 422),
    ),
    Route(
        method="GET", path="/workflows/{name}", id="showWorkflow", handler=reads.show_workflow, roles=("read",),
        summary="The newest version of a workflow, and which others there are.",
        parameters=(_SHOWN,), answers={200: "WorkflowWithVersions"},
    ),
    Route(
        method="GET", path="/workflows/{name}/{version}", id="showWorkflowVersion",
        handler=reads.show_workflow_version, roles=("read",),
        summary="One version of a workflow.",
        parameters=(_SHOWN, _VERSION), answers={200: "Workflow"},
    ),
    Route(
        method="GET", path="/sagas", id="listSagas", handler=reads.list_sagas, roles=("read",),
        summary="Sagas, the latest change first.",
        query=(_STATUS, _OF_WORKFLOW, _LABEL, _SINCE, LIMIT, CURSOR), answers={200: "SagaPage"},
    ),
    Route(
        method="POST", path="/sagas", id="startSaga", handler=commands.start, roles=("run",),
        summary="Start a saga; the same key and body again give the same saga.",
        body=StartBody, has_key=True, answers={201: "Started", 200: "Started"}, refusals=(404, 422),
    ),
    Route(
        method="POST", path="/intentions", id="intend", handler=commands.intend, roles=("run",),
        summary="Start the deployment's workflow for what a user wants, in words; the same key and body again give the same saga.",
        body=IntentionBody, has_key=True, answers={201: "Intended", 200: "Intended"}, refusals=(404, 422),
    ),
    Route(
        method="GET", path="/sagas/{saga}", id="showSaga", handler=reads.show_saga, roles=("read",),
        summary="Where a saga is, and its result.",
        parameters=(_SAGA,), answers={200: "Saga"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/events", id="listEvents", handler=reads.list_events, roles=("read",),
        summary="A saga's log, in pages.",
        parameters=(_SAGA,), query=(_AFTER, _EVENTS), answers={200: "EventPage"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/live", id="showLive", handler=reads.show_live, roles=("read",),
        summary="What its models are writing just now. The caller counts as a viewer for 30 s.",
        parameters=(_SAGA,), answers={200: "LiveTexts"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/values/{digest}", id="showValue", handler=reads.show_value, roles=("read",),
        summary="A value that the saga's log names by `cas://sha256/…`; a large one comes in parts.",
        parameters=(_SAGA, _DIGEST), query=(_FROM,), answers={200: "StoredValue"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/cost", id="showCost", handler=reads.show_cost, roles=("read",),
        summary="What a saga has cost so far, estimated from its log.",
        parameters=(_SAGA,), answers={200: "Cost"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/explain", id="showWay", handler=reads.show_way, roles=("read",),
        summary="Which way a saga went: its nodes in the order in which they were settled, in pages.",
        parameters=(_SAGA,), query=(_AFTER, _STEPS), answers={200: "Way"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/explain/{node}", id="explainNode", handler=reads.explain_node,
        roles=("read",),
        summary="Why a node ran, or did not, in each of its rounds.",
        parameters=(_SAGA, _NODE), answers={200: "Explanation"}, refusals=(413,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/cancel", id="cancelSaga", handler=commands.cancel, roles=("run",),
        summary="Cancel a saga; again, it changes nothing.",
        parameters=(_SAGA,), body=CancelBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/signals/{name}", id="sendSignal", handler=commands.signal,
        roles=("run", "answer"),
        summary="Send a signal; one with a known key changes nothing.",
        parameters=(_SAGA, _SIGNAL), body=SignalBody, has_key=True, answers={202: "Accepted"},
        refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/answer", id="answerQuestion", handler=commands.answer,
        roles=("answer", "operate"),
        summary="Answer a question that is for the caller; the same answer again changes nothing.",
        parameters=(_SAGA,), body=AnswerBody, has_key=True, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/callbacks/{token}", id="callBack", handler=commands.callback, roles=(), by_token=CALLBACKS,
        summary="Work elsewhere says that it is done, has failed or is alive; the same completion again changes nothing.",
        parameters=(_TOKEN,), body=CallbackBody, answers={202: "CalledBack"}, refusals=(409, 410),
    ),
    Route(
        method="POST", path="/models/{profile}/webhook", id="announceModel", handler=commands.announced, roles=(),
        is_signed=True, most_bytes=MOST_ANNOUNCED,
        summary="A provider of models announces, signed, that a request in the background is over; again, it changes nothing.",
        parameters=(_PROFILE,), takes_text=True, answers={202: "Announced"}, refusals=(401,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/claim", id="claimQuestion", handler=commands.claim,
        roles=("answer", "operate"),
        summary="Make a question of a group or a role the caller's own, or give it back. Repeated, it changes nothing.",
        parameters=(_SAGA,), body=ClaimBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/remind", id="remindOfQuestion", handler=commands.remind,
        roles=("run", "answer", "operate"),
        summary="Have those whom a question is for told again, at most once in five minutes.",
        parameters=(_SAGA,), body=RemindBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/confirm", id="confirm", handler=commands.confirm, roles=(), by_token=CONFIRMATIONS,
        summary="Answer the question that a link in a message is about; each link is good for one answer.",
        body=ConfirmBody, answers={202: "Accepted"}, refusals=(404, 409, 410),
    ),
    Route(
        method="POST", path="/sagas/{saga}/resume", id="resumeSaga", handler=commands.resume, roles=("operate",),
        summary="Let a parked saga try again.",
        parameters=(_SAGA,), body=ResumeBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/forks", id="forkSaga", handler=commands.fork, roles=("operate",),
        summary="Go on from an earlier version of the log in a new branch; a known key makes no second one.",
        parameters=(_SAGA,), body=ForkBody, has_key=True, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/rollback", id="rollBackSaga", handler=commands.rollback, roles=("operate",),
        summary="Undo what a saga has done, or say what would be undone; a known key makes no second rollback.",
        parameters=(_SAGA,), body=RollbackBody, has_key=True,
        answers={200: "RollbackPlan", 202: "RollbackAccepted"}, refusals=(409,),
    ),
    Route(
        method="GET", path="/questions", id="listQuestions", handler=reads.list_questions,
        roles=("read", "answer", "operate"),
        summary="Open questions that are for the caller, what expires first in front; or those of one saga.",
        query=(_OF_SAGA, LIMIT, CURSOR), answers={200: "QuestionPage"}, refusals=(404,),
    ),
    Route(
        method="GET", path="/incidents", id="listIncidents", handler=reads.list_incidents, roles=("read",),
        summary="What went wrong and needs a person, the newest first.",
        query=(_INCIDENTS, LIMIT, CURSOR), answers={200: "IncidentPage"},
    ),
    Route(
        method="GET", path="/incidents/{incident}", id="showIncident", handler=reads.show_incident, roles=("read",),
        summary="One incident.",
        parameters=(_INCIDENT,), answers={200: "Incident"},
    ),
    Route(
        method="POST", path="/incidents/{incident}/acknowledge", id="acknowledgeIncident",
        handler=commands.acknowledge, roles=("operate",),
        summary="Say that the caller has an incident that is open. The last one counts; repeated, it changes nothing.",
        parameters=(_INCIDENT,), body=AcknowledgeBody, answers={202: "Incident"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/incidents/{incident}/resolve", id="resolveIncident", handler=commands.resolve,
        roles=("operate",),
        summary="Resolve an incident: the caller has done something about it. Repeated, it changes nothing.",
        parameters=(_INCIDENT,), answers={202: "Incident"},
    ),
    Route(
        method="GET", path="/breakers", id="listBreakers", handler=reads.list_breakers, roles=("read",),
        summary="Circuit breakers of which something is known, by their names.",
        query=(LIMIT, CURSOR), answers={200: "BreakerPage"},
    ),
    Route(
        method="GET", path="/breakers/{breaker}", id="showBreaker", handler=reads.show_breaker, roles=("read",),
        summary="The state of a circuit breaker, its last failures and transitions.",
        parameters=(_BREAKER,), answers={200: "Breaker"},
    ),
    Route(
        method="POST", path="/breakers/{breaker}/open", id="openBreaker", handler=commands.open_breaker,
        roles=("operate",), summary="Open a circuit breaker: no call goes through, for a while or until it is reset.",
        parameters=(_BREAKER,), body=OpenBreakerBody, answers={202: "Breaker"},
    ),
    Route(
        method="POST", path="/breakers/{breaker}/reset", id="resetBreaker", handler=commands.reset_breaker,
        roles=("operate",), summary="Close a circuit breaker: calls go through.",
        parameters=(_BREAKER,), answers={202: "Breaker"},
    ),
    *SCHEDULES,
    *EVENTS,
    *LETTERS,
    *USERS,
    Route(
        method="GET", path="/costs", id="listCosts", handler=reads.list_costs, roles=("operate",),
        summary="What models have cost the tenant on a day, by workflow, user or model; or what AWS has.",
        query=(_BY, _OF, _DAY, CURSOR), answers={200: "CostPage"},
    ),
    Route(
        method="GET", path="/error-budgets", id="listErrorBudgets", handler=reads.list_error_budgets, roles=("read",),
        summary="How many sagas of each workflow have failed on a day, and how many more may.",
        query=(_DAY, CURSOR), answers={200: "ErrorBudgetPage"},
    ),
    Route(
        method="GET", path="/budget", id="showBudget", handler=reads.show_budget, roles=("read",),
        summary="What the caller's sagas have spent today, and may spend.",
        answers={200: "Budget"},
    ),
    Route(
        method="GET", path="/tools", id="listTools", handler=reads.list_tools, roles=("read",),
        summary="The tools that workflows can use.",
        answers={200: "Tools"},
    ),
    Route(
        method="GET", path="/node-types", id="listNodeTypes", handler=reads.list_node_types, roles=("read",),
        summary="The kinds of nodes, and the JSON Schema of a workflow document.",
        answers={200: "NodeTypes"},
    ),
)  # fmt: skip
