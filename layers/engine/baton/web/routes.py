"""Route table: the paths that the API serves, with their bodies, answers, refusals and roles.

The table contains no behaviour. Handlers are in handlers.py, dispatch is in app.py, the OpenAPI document is
in openapi.py. The fields of a row are in parameters.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.failures.breakers import NAME_PATTERN as BREAKER_NAME
from baton.core.graph.graph import ANY_WORKFLOW_NAME
from baton.core.log.labels import MOST, NAME, VALUE
from baton.core.log.state import LISTS
from baton.core.outside import USER_PATTERN, USER_SHAPE
from baton.core.read.answers import ATTEMPTS
from baton.core.read.day_costs import BY, OF
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.requests import travel
from baton.runtime.requests.answers import INCIDENT_ID, INCIDENT_STATUSES
from baton.runtime.requests.queries import MAX_EVENTS
from baton.settings import ROLES
from baton.web import handlers
from baton.web.bodies import requests as bodies
from baton.web.bodies.forks import ForkBody
from baton.web.bodies.versions import PatchSagaBody
from baton.web.parameters import (
    CALLBACKS,
    CONFIRMATIONS,
    CURSOR,
    DEFAULT_EVENTS,
    LIMIT,
    MAX_NUMBER,
    MOST_ANNOUNCED,
    Route,
    day,
    moment,
    object_parameter,
    pattern_parameter,
    whole_parameter,
    word_parameter,
)
from baton.web.resource_routes import EVENTS, FACTS, LETTERS, SCHEDULES, USERS, VERSIONS

_SAGA = pattern_parameter(
    "saga", SAGA_ID, "the id of a saga", "Identifier of the saga, as returned by its start."
)
_VERSION = whole_parameter("version", 1, MAX_NUMBER, None, "Version of the workflow.")
_SIGNAL = pattern_parameter(
    "name", "[^/]{1,128}", "the name of a signal", "Name of a signal that a node of the workflow waits for."
)
_INCIDENT = pattern_parameter("incident", INCIDENT_ID, "the id of an incident", "Identifier of the incident.")
_BREAKER = pattern_parameter(
    "breaker", BREAKER_NAME, "the name of a circuit breaker", "Name of the target.", example="payments"
)
_DIGEST = pattern_parameter(
    "digest",
    "[0-9a-f]{64}",
    "the 64 hexadecimal digits of `cas://sha256/…`",
    "The 64 hexadecimal digits of the value's `cas://sha256/…` reference.",
)
_TOKEN = pattern_parameter(
    "token",
    "[^/]+",
    "the token of a callback",
    "Callback token, which the tool received as `context.callback_token`.",
)
_PROFILE = pattern_parameter(
    "profile",
    "[a-z][a-z0-9_]{0,31}",
    "the name of a profile of models",
    "Name of a profile in the deployment's `ModelProfiles`.",
    example="openai",
)
_NODE = pattern_parameter(
    "node", "[^/]{1,128}", "the name of a node", "Name of a node of the saga's workflow.", example="pay"
)

_STATUS = word_parameter(
    "status",
    tuple(LISTS),
    "Status of the sagas. `open` selects all sagas that have not ended, `done` all that have.",
    hints={"pending": "a list shows a new saga as `running`"},
)
_INCIDENTS = word_parameter(
    "status",
    INCIDENT_STATUSES,
    "Status of the incidents: open, open and not acknowledged by a person, or resolved.",
)
_OF_WORKFLOW = pattern_parameter(
    "workflow",
    ANY_WORKFLOW_NAME[1:-1],
    f"the name of a workflow, which matches {ANY_WORKFLOW_NAME}",
    "Return only sagas of this workflow, or of this graph of its document.",
)
_SHOWN = pattern_parameter(
    "name",
    ANY_WORKFLOW_NAME[1:-1],
    "the name of a workflow",
    "Name of the workflow, or `NAME.GRAPH` for a graph of its document.",
    example="dinner",
)
_OF_USER = pattern_parameter(
    "user", USER_PATTERN, USER_SHAPE, "Return only sagas of this user.", example="ada"
)
_LABEL = pattern_parameter(
    "label",
    rf"{NAME}={VALUE}(,{NAME}={VALUE}){{0,{MOST - 1}}}",
    "a label, written name=value; a comma stands between two",
    "Return only sagas with this label. With several labels, return sagas that have all of them.",
    example="customer=4711",
)
_ANSWERED = word_parameter(
    "answered",
    ("true", "false"),
    "Return the closed questions of `saga` with their answers, the newest first, instead of the open ones.",
)
_OF_SAGA = pattern_parameter(
    "saga", SAGA_ID, "the id of a saga", "Return only questions of this saga, regardless of their audience."
)
_OF = word_parameter(
    "of",
    OF,
    "Costs to return: those of models, or those of AWS, estimated from the logs of the sagas. Default: models.",
)
_BY = word_parameter("by", BY, "Key by which costs are summed. Default: workflow.")
_DAY = day("day", "Day (UTC) on which the sagas last began to run, began to wait, or ended. Default: today.")
_SINCE = moment("since", "Return only sagas with `changed_at` at or after this time.")
_AFTER = whole_parameter("after", 0, MAX_NUMBER, 0, "Return only entries with a higher version.")
_AT = whole_parameter(
    "at", 0, MAX_NUMBER, 0, "Version of the log: the saga is shown as it was then. 0: as it is."
)
_TO = whole_parameter("to", 0, MAX_NUMBER, 0, "Version of the second saga's log. 0: as it is.")
_SECOND = pattern_parameter(
    "second", SAGA_ID, "the id of a saga", "Second saga. It may be the first, at another version."
)
_KIND = word_parameter(
    "kind",
    ATTEMPTS,
    "Return only attempts of this kind: of a step, of an inverse (`undo`), or of a model's `alternative` to a step.",
)
_RUNS = whole_parameter(
    "limit",
    1,
    200,
    50,
    "Approximate maximum number of attempts on a page. Attempts of the same entry are on the same page.",
)
_STEPS = whole_parameter(
    "limit",
    1,
    MAX_EVENTS,
    DEFAULT_EVENTS,
    "Approximate maximum number of nodes on a page. Nodes settled by the same entry are on the same page.",
)
_FROM = whole_parameter(
    "after",
    0,
    MAX_NUMBER,
    0,
    "Position at which the part begins: the value of `next` from the previous part.",
)
_SINCE_LIVE = whole_parameter(
    "after", 0, MAX_NUMBER, None, "Return also the answers that have ended since this version, each whole."
)
_MESSAGES = whole_parameter(
    "limit",
    1,
    200,
    100,
    "Approximate maximum number of messages on a page. Those of an entry are on one page.",
)
_EVENTS = whole_parameter("limit", 1, MAX_EVENTS, DEFAULT_EVENTS, "Maximum number of entries on a page.")

_CLAIM = pattern_parameter(
    "key",
    r"[0-9a-f]{32}(\.[0-9a-f]{16})?",
    "the key of a claim",
    "Idempotency key of the claim, as in the claims of a saga.",
)
_CLAIM_TOOL = pattern_parameter(
    "tool", "[^/]{1,128}", "the name of a tool", "Name of a tool with `effect=once`.", example="pay.card"
)
_CLAIM_WITH = object_parameter(
    "with",
    "Parameters of the call that its key is made of, as a JSON object.",
    '{"invoice_id": "17", "version": 1}',
)
_CLAIM_GIVEN = pattern_parameter(
    "key", ".{1,1000}", "at most 1,000 characters", "`key` of the call's node, in the place of `with`."
)
_CLAIM_USER = pattern_parameter(
    "user",
    USER_PATTERN,
    USER_SHAPE,
    "User of the call, if the key is made of the user. Default: the caller.",
    example="ada",
)
_CLAIM_AT = moment(
    "at", "Time when the call's step became ready, if the key is made of a window. Default: now."
)

CLAIMS: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/sagas/{saga}/claims", id="listSagaClaims", roles=("read",),
        handler=lambda ask: ask.service.claims.of_saga(ask.path["saga"], **ask.query),
        summary="List the claims of once-only effects that a saga has made or met, in the order of its log.",
        parameters=(_SAGA,), query=(_AFTER, _RUNS), answers={200: "EffectClaimPage"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/claims", id="findClaims", roles=("read",), handler=handlers.find_claims,
        summary="Find the claims of a tool's calls by the parameters of their key.",
        query=(_CLAIM_TOOL, _CLAIM_WITH, _CLAIM_GIVEN, _CLAIM_USER, _CLAIM_AT), answers={200: "EffectClaimPage"},
        refusals=(404,),
    ),
    Route(
        method="GET", path="/claims/{key}", id="showClaim", roles=("read",),
        handler=lambda ask: ask.service.claims.show(ask.path["key"]),
        summary="Retrieve the claim of a once-only effect.",
        parameters=(_CLAIM,), answers={200: "EffectClaim"},
    ),
    Route(
        method="POST", path="/claims/{key}/free", id="freeClaim", handler=handlers.free_claim, roles=("operate",),
        summary="Free the claim of a once-only effect: the next call with its key acts. A repeated request has no effect.",
        parameters=(_CLAIM,), body=bodies.FreeClaimBody, answers={202: "EffectClaim"}, refusals=(409,),
    ),
)  # fmt: skip

ALIASES: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/aliases", id="listAliases", roles=("read",),
        handler=lambda ask: ask.service.aliases.listed(),
        summary="List the names that models give to parameters of tools, and which of them are aliases.",
        answers={200: "ParameterAliases"},
    ),
    Route(
        method="POST", path="/aliases", id="decideAlias", handler=handlers.decide_alias, roles=("operate",),
        summary="Approve, reject or drop an alias, and list all. A repeated request has no effect.",
        body=bodies.AliasBody, answers={202: "ParameterAliases"}, refusals=(404, 409),
    ),
)  # fmt: skip

ROUTES: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/health", id="health", roles=(),
        handler=lambda ask: ask.service.health(),
        summary="Check that the table responds.",
        answers={200: "Health"},
    ),
    Route(
        method="GET", path="/openapi.json", id="openapi", handler=handlers.openapi, roles=(),
        summary="Retrieve this OpenAPI document.",
        answers={200: "Description"},
    ),
    Route(
        method="GET", path="/workflows", id="listWorkflows", roles=("read",),
        handler=lambda ask: ask.queries.workflows(**ask.query),
        summary="List workflows, ordered by name, with their newest versions.",
        query=(LIMIT, CURSOR), answers={200: "WorkflowPage"},
    ),
    Route(
        method="POST", path="/workflows", id="registerWorkflow", handler=handlers.register, roles=("operate",),
        summary="Compile and register a workflow document. A repeated request with the same document has no "
            "effect.",
        takes_text=True, answers={201: "Registered", 200: "Registered"}, refusals=(409, 422),
    ),
    Route(
        method="GET", path="/workflows/{name}", id="showWorkflow", roles=("read",),
        handler=lambda ask: ask.queries.workflow(ask.path["name"]),
        summary="Retrieve the newest version of a workflow and a list of its versions.",
        parameters=(_SHOWN,), answers={200: "WorkflowWithVersions"},
    ),
    *VERSIONS,
    Route(
        method="GET", path="/workflows/{name}/{version}", id="showWorkflowVersion", roles=("read",),
        handler=lambda ask: ask.queries.workflow(ask.path["name"], str(ask.path["version"])),
        summary="Retrieve one version of a workflow.",
        parameters=(_SHOWN, _VERSION), answers={200: "Workflow"},
    ),
    Route(
        method="GET", path="/sagas", id="listSagas", roles=("read",),
        handler=lambda ask: ask.queries.sagas(**ask.query),
        summary="List sagas, ordered by latest change first.",
        query=(_STATUS, _OF_WORKFLOW, _OF_USER, _LABEL, _SINCE, LIMIT, CURSOR), answers={200: "SagaPage"},
    ),
    Route(
        method="POST", path="/sagas", id="startSaga", handler=handlers.start, roles=("run",),
        summary="Start a saga. Requests with the same idempotency key and body return the same saga.",
        body=bodies.StartBody, has_key=True, answers={201: "Started", 200: "Started"}, refusals=(404, 422),
    ),
    Route(
        method="POST", path="/warm", id="warm", handler=handlers.warm, roles=("run",),
        summary="Call a tool that declares a `cache`, ahead of the steps that need its result. Equal requests share a saga while its result is kept.",
        body=bodies.WarmBody, answers={201: "Started", 200: "Started"}, refusals=(404, 409, 422),
    ),
    Route(
        method="POST", path="/mcp", id="mcp", handler=handlers.mcp, roles=ROLES,
        summary="Answer a message of an MCP client. Each tool needs the role of its own route.",
        takes_text=True, takes={"application/json": "McpBody"}, has_key=True, answers={200: "McpAnswer", 202: "McpAnswer"},
    ),
    Route(
        method="POST", path="/intentions", id="intend", handler=handlers.intend, roles=("run",),
        summary="Start the deployment's intention workflow with a user's words. Requests with the same idempotency key and body return the same saga.",
        body=bodies.IntentionBody, has_key=True, answers={201: "Intended", 200: "Intended"}, refusals=(404, 422),
    ),
    Route(
        method="POST", path="/sagas/pause", id="pauseSagas", handler=handlers.pause_many, roles=("operate",),
        summary="Pause a workflow, or all sagas: those that have not ended, and those that begin from now on. A repeated request has no effect.",
        body=bodies.PauseManyBody, answers={202: "SteeredPage"}, refusals=(404,),
    ),
    Route(
        method="POST", path="/sagas/resume", id="resumeSagas", handler=handlers.resume_many, roles=("operate",),
        summary="Resume a paused workflow, or all sagas; with a code, the sagas that are parked for it. A repeated request has no effect.",
        body=bodies.MatchManyBody, answers={202: "SteeredPage"}, refusals=(404,),
    ),
    Route(
        method="POST", path="/sagas/cancel", id="cancelSagas", handler=handlers.cancel_many, roles=("operate",),
        summary="Cancel the matching sagas, or count them. A repeated request has no effect.",
        body=bodies.CancelManyBody, answers={202: "SteeredPage"},
    ),
    Route(
        method="POST", path="/sagas/retry", id="retrySagas", handler=handlers.retry_many, roles=("operate",),
        summary="Retry the matching failed sagas from their failed steps, or count them. A repeated request with the same idempotency key retries no saga twice.",
        body=bodies.RetryManyBody, has_key=True, answers={202: "SteeredPage"},
    ),
    Route(
        method="GET", path="/sagas/{saga}", id="showSaga", roles=("read",),
        handler=lambda ask: ask.queries.show(ask.path["saga"], **ask.query),
        summary="Retrieve a saga and its result.",
        parameters=(_SAGA,), query=(_AT,), answers={200: "Saga"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/workflow", id="showSagaWorkflow", roles=("read",),
        handler=lambda ask: ask.queries.workflow_of(ask.path["saga"], **ask.query),
        summary="Retrieve the graph that a saga runs, with its document. It may be another one than that of a registered version.",
        parameters=(_SAGA,), query=(_AT,), answers={200: "SagaWorkflow"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/state", id="showState", roles=("read",),
        handler=lambda ask: travel.state_at(ask.queries, ask.path["saga"], **ask.query),
        summary="Retrieve a saga as it was at a version of its log, with the outputs of its nodes.",
        parameters=(_SAGA,), query=(_AT, _AFTER, _RUNS), answers={200: "SagaState"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/diff/{second}", id="compareSagas", roles=("read",),
        handler=lambda ask: travel.compare(ask.queries, ask.path["saga"], ask.path["second"], **ask.query),
        summary="Compare two sagas, or two versions of one: their parts, and the last attempts at each node.",
        parameters=(_SAGA, _SECOND), query=(_AT, _TO), answers={200: "Comparison"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/events", id="listEvents", roles=("read",),
        handler=lambda ask: ask.queries.events(ask.path["saga"], **ask.query),
        summary="List the entries of a saga's log.",
        parameters=(_SAGA,), query=(_AFTER, _EVENTS), answers={200: "EventPage"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/live", id="showLive", roles=("read",),
        handler=lambda ask: ask.queries.live(ask.path["saga"], **ask.query),
        summary="Retrieve the texts that the saga's models are generating. The request registers the caller "
            "as a viewer for 30 s.",
        parameters=(_SAGA,), query=(_SINCE_LIVE,), answers={200: "LiveTexts"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/messages", id="listMessages", roles=("read",),
        handler=lambda ask: ask.queries.messages(ask.path["saga"], **ask.query),
        summary="List the messages to the saga's agents, and their answers.",
        parameters=(_SAGA,), query=(_AFTER, _MESSAGES), answers={200: "MessagePage"}, refusals=(413,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/messages", id="sendMessage", handler=handlers.say, roles=("run", "answer"),
        summary="Send a message to an agent, or end its conversation. A repeated request with the same idempotency key has no effect.",
        parameters=(_SAGA,), body=bodies.MessageBody, has_key=True, answers={202: "Signalled"}, refusals=(409,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/values/{digest}", id="showValue", roles=("read",),
        handler=lambda ask: ask.queries.value(ask.path["saga"], ask.path["digest"], **ask.query),
        summary="Retrieve a value that the saga's log refers to as `cas://sha256/…`. A large value is "
            "returned in parts.",
        parameters=(_SAGA, _DIGEST), query=(_FROM,), answers={200: "StoredValue"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/cost", id="showCost", roles=("read",),
        handler=lambda ask: ask.queries.cost(ask.path["saga"]),
        summary="Estimate the cost of a saga so far from its log.",
        parameters=(_SAGA,), answers={200: "Cost"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/explain", id="showWay", roles=("read",),
        handler=lambda ask: ask.queries.way(ask.path["saga"], **ask.query),
        summary="List the nodes of a saga in the order in which they were settled.",
        parameters=(_SAGA,), query=(_AFTER, _STEPS, _AT), answers={200: "Way"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/explain/{node}", id="explainNode", roles=("read",),
        handler=lambda ask: ask.queries.explain(ask.path["saga"], ask.path["node"], **ask.query),
        summary="Explain why a node ran or did not run, for each of its rounds.",
        parameters=(_SAGA, _NODE), query=(_AT,), answers={200: "Explanation"}, refusals=(413,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/steps", id="listSteps", roles=("read",),
        handler=lambda ask: ask.queries.steps(ask.path["saga"], **ask.query),
        summary="List the attempts of a saga with their inputs and outputs, in the order of its log.",
        parameters=(_SAGA,), query=(_KIND, _AFTER, _RUNS, _AT), answers={200: "StepPage"}, refusals=(413,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/cancel", id="cancelSaga", handler=handlers.cancel, roles=("run",),
        summary="Cancel a saga. A repeated request has no effect.",
        parameters=(_SAGA,), body=bodies.CancelBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/signals/{name}", id="sendSignal", handler=handlers.signal,
        roles=("run", "answer"),
        summary="Send a signal to a saga. A repeated request with the same idempotency key has no effect, and "
            "returns the function's answer (200) once there is one.",
        parameters=(_SAGA, _SIGNAL), body=bodies.SignalBody, has_key=True,
        answers={200: "Signalled", 202: "Signalled"},
        refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/answer", id="answerQuestion", handler=handlers.answer_question,
        roles=("answer", "operate"),
        summary="Answer a question that the caller may answer. Repeating the same answer has no effect.",
        parameters=(_SAGA,), body=bodies.AnswerBody, has_key=True, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/callbacks/{token}", id="callBack", handler=handlers.callback, roles=(), by_token=CALLBACKS,
        summary="Report the success, failure or heartbeat of external work. Repeating the same completion has no effect.",
        parameters=(_TOKEN,), body=bodies.CallbackBody, answers={202: "CalledBack"}, refusals=(409, 410),
    ),
    Route(
        method="POST", path="/models/{profile}/webhook", id="announceModel", handler=handlers.announced, roles=(),
        is_signed=True, most_bytes=MOST_ANNOUNCED,
        summary="Receive a model provider's signed announcement that a background request has ended. A "
            "repeated request has no effect.",
        parameters=(_PROFILE,), takes_text=True, answers={202: "Announced"}, refusals=(401,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/claim", id="claimQuestion", handler=handlers.claim,
        roles=("answer", "operate"),
        summary="Claim a question of a group or a role for the caller, or release it. A repeated request has no effect.",
        parameters=(_SAGA,), body=bodies.ClaimBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/remind", id="remindOfQuestion", handler=handlers.remind,
        roles=("run", "answer", "operate"),
        summary="Remind the audience of a question, at most once in five minutes.",
        parameters=(_SAGA,), body=bodies.RemindBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/confirm", id="confirm", handler=handlers.confirm, roles=(), by_token=CONFIRMATIONS,
        summary="Answer a question through the link in a message. A link accepts one answer.",
        body=bodies.ConfirmBody, answers={202: "Accepted"}, refusals=(404, 409, 410),
    ),
    Route(
        method="POST", path="/sagas/{saga}/resume", id="resumeSaga", handler=handlers.resume_saga, roles=("operate",),
        summary="Resume a parked or paused saga, or repair one that does not go on by itself. A repeated request has no effect.",
        parameters=(_SAGA,), body=bodies.ResumeBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/pause", id="pauseSaga", handler=handlers.pause_saga, roles=("operate",),
        summary="Pause a saga. It begins nothing until it is resumed. A repeated request has no effect.",
        parameters=(_SAGA,), body=bodies.PauseBody, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/retry", id="retrySaga", roles=("operate",),
        handler=lambda ask: ask.service.retry(ask.path["saga"], ask.key),
        summary="Retry a failed saga from its failed step in a new branch. A repeated request with the same idempotency key has no effect.",
        parameters=(_SAGA,), has_key=True, answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/wake", id="wakeSaga", roles=("operate",),
        handler=lambda ask: ask.service.wake(ask.path["saga"]),
        summary="Have a worker look at a saga now. `changed` is false if a worker has it already.",
        parameters=(_SAGA,), answers={202: "Accepted"}, refusals=(409,),
    ),
    Route(
        method="GET", path="/sagas/{saga}/diagnosis", id="diagnoseSaga", roles=("operate",),
        handler=lambda ask: ask.service.diagnosis(ask.path["saga"], repairs=False),
        summary="Compare a saga's head, log and graph, and list what is wrong with it.",
        parameters=(_SAGA,), answers={200: "Diagnosis"},
    ),
    Route(
        method="POST", path="/sagas/{saga}/diagnosis", id="repairSaga", roles=("operate",),
        handler=lambda ask: ask.service.diagnosis(ask.path["saga"], repairs=True),
        summary="Repair a saga as far as no person has to decide. A healthy saga stays as it is.",
        parameters=(_SAGA,), answers={202: "Diagnosis"},
    ),
    Route(
        method="POST", path="/diagnoses", id="diagnoseSagas", handler=handlers.diagnose, roles=("operate",),
        summary="Diagnose, and optionally repair, the open sagas of the tenant, page by page.",
        body=bodies.DiagnosesBody, answers={202: "DiagnosisPage"},
    ),
    Route(
        method="GET", path="/sagas/{saga}/replay", id="replaySaga", roles=("operate",),
        handler=lambda ask: ask.service.replay(ask.path["saga"]),
        summary="Fold a saga's log again, decide again, and compare the result with its log, snapshot and head.",
        parameters=(_SAGA,), answers={200: "Replay"}, refusals=(413,),
    ),
    Route(
        method="POST", path="/sagas/{saga}/forks", id="forkSaga", handler=handlers.fork, roles=("operate",),
        summary="Continue a saga from an earlier version of its log in a new branch, with its values or with others. "
            "A repeated request with the same idempotency key has no effect.",
        parameters=(_SAGA,), body=ForkBody, has_key=True,
        answers={200: "ForkPreview", 202: "ForkAccepted"}, refusals=(409, 413),
    ),
    Route(
        method="POST", path="/sagas/{saga}/patches", id="patchSaga", handler=handlers.patch, roles=("operate",),
        summary="Change the graph of a running saga, or go back to the graph before the last change. A repeated request with "
            "the same idempotency key has no effect.",
        parameters=(_SAGA,), body=PatchSagaBody, has_key=True, answers={200: "PatchedSaga", 202: "PatchedSaga"},
        refusals=(409, 422),
    ),
    Route(
        method="POST", path="/sagas/{saga}/rollback", id="rollBackSaga", handler=handlers.rollback, roles=("operate",),
        summary="Roll back a saga, or return the plan of the rollback. A repeated request with the same "
            "idempotency key has no effect.",
        parameters=(_SAGA,), body=bodies.RollbackBody, has_key=True,
        answers={200: "RollbackPlan", 202: "RollbackAccepted"}, refusals=(409,),
    ),
    Route(
        method="GET", path="/questions", id="listQuestions", roles=("read", "answer", "operate"),
        handler=lambda ask: ask.queries.questions(**ask.query),
        summary="List open questions that the caller may answer, or all of one saga, ordered by expiry, "
            "earliest first.",
        query=(_OF_SAGA, _ANSWERED, LIMIT, CURSOR), answers={200: "QuestionPage"}, refusals=(404, 413),
    ),
    Route(
        method="GET", path="/incidents", id="listIncidents", roles=("read",),
        handler=lambda ask: ask.queries.incidents(**ask.query),
        summary="List incidents, newest first.",
        query=(_INCIDENTS, LIMIT, CURSOR), answers={200: "IncidentPage"},
    ),
    Route(
        method="GET", path="/incidents/{incident}", id="showIncident", roles=("read",),
        handler=lambda ask: ask.queries.incident(ask.path["incident"]),
        summary="Retrieve an incident.",
        parameters=(_INCIDENT,), answers={200: "Incident"},
    ),
    Route(
        method="POST", path="/incidents/{incident}/acknowledge", id="acknowledgeIncident",
        handler=handlers.acknowledge, roles=("operate",),
        summary="Acknowledge an open incident for the caller. A later acknowledgement replaces an earlier "
            "one. A repeated request has no effect.",
        parameters=(_INCIDENT,), body=bodies.AcknowledgeBody, answers={202: "Incident"}, refusals=(409,),
    ),
    Route(
        method="POST", path="/incidents/{incident}/resolve", id="resolveIncident", roles=("operate",),
        handler=lambda ask: ask.service.incidents.resolve(ask.path["incident"]),
        summary="Resolve an incident. A repeated request has no effect.",
        parameters=(_INCIDENT,), answers={202: "Incident"},
    ),
    Route(
        method="GET", path="/breakers", id="listBreakers", roles=("read",),
        handler=lambda ask: ask.service.breakers.page(**ask.query),
        summary="List circuit breakers with recorded state, ordered by name.",
        query=(LIMIT, CURSOR), answers={200: "BreakerPage"},
    ),
    Route(
        method="GET", path="/breakers/{breaker}", id="showBreaker", roles=("read",),
        handler=lambda ask: ask.service.breakers.show(ask.path["breaker"]),
        summary="Retrieve the state, the last failures and the last transitions of a circuit breaker.",
        parameters=(_BREAKER,), answers={200: "Breaker"},
    ),
    Route(
        method="POST", path="/breakers/{breaker}/open", id="openBreaker", handler=handlers.open_breaker,
        roles=("operate",), summary="Open a circuit breaker for a period, or until it is reset. It lets no call through.",
        parameters=(_BREAKER,), body=bodies.OpenBreakerBody, answers={202: "Breaker"},
    ),
    Route(
        method="POST", path="/breakers/{breaker}/reset", id="resetBreaker", roles=("operate",),
        handler=lambda ask: ask.service.breakers.reset(ask.path["breaker"]),
        summary="Close a circuit breaker. It lets calls through.",
        parameters=(_BREAKER,), answers={202: "Breaker"},
    ),
    *CLAIMS,
    *ALIASES,
    *SCHEDULES,
    *EVENTS,
    *LETTERS,
    *USERS,
    *FACTS,
    Route(
        method="GET", path="/costs", id="listCosts", roles=("operate",),
        handler=lambda ask: ask.queries.costs(**ask.query),
        summary="List the tenant's costs of models or AWS on a day, by workflow, user or model.",
        query=(_BY, _OF, _DAY, CURSOR), answers={200: "CostPage"},
    ),
    Route(
        method="GET", path="/error-budgets", id="listErrorBudgets", roles=("read",),
        handler=lambda ask: ask.queries.error_budgets(**ask.query),
        summary="List the error budgets of workflows for a day.",
        query=(_DAY, CURSOR), answers={200: "ErrorBudgetPage"},
    ),
    Route(
        method="GET", path="/budget", id="showBudget", roles=("read",),
        handler=lambda ask: ask.queries.budget(),
        summary="Retrieve today's spending of the caller's sagas, and its limits.",
        answers={200: "Budget"},
    ),
    Route(
        method="GET", path="/tools", id="listTools", roles=("read",),
        handler=lambda ask: ask.queries.tools(),
        summary="List the tools that workflows can use.",
        answers={200: "Tools"},
    ),
    Route(
        method="GET", path="/node-types", id="listNodeTypes", roles=("read",),
        handler=lambda ask: ask.queries.node_types(),
        summary="List the node kinds, with the JSON Schema of a workflow document.",
        answers={200: "NodeTypes"},
    ),
)  # fmt: skip
