"""Every code of a failure: its class, a sentence for a person, and advice. The one table.

Outside names of exceptions, statuses and services are in names.py, the engine's reaction to a code in
matrix.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

TRANSIENT, RECOVERABLE, USER_RESOLVABLE = "transient", "recoverable", "user_resolvable"
PERMANENT, CATASTROPHIC, UNKNOWN = "permanent", "catastrophic", "unknown"

CLASSES: Mapping[str, str] = {
    TRANSIENT: "Goes away by itself: a network timeout, a rate limit, a service that is down for a moment.",
    RECOVERABLE: "Another way leads there: credentials that ran out, a thing that has moved.",
    USER_RESOLVABLE: "A person has to say or do something: log in, rephrase, approve.",
    PERMANENT: "Nothing changes it: the input is wrong, a rule of the business says no.",
    CATASTROPHIC: "The system underneath is broken: a database is down, memory or disk is used up.",
    UNKNOWN: "Neither the tool nor the engine knows what it is. It is tried again, in the hope that it goes away.",
}
"""The six classes, each with its meaning."""

CODE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
"""Pattern of any code, also of codes outside of the tables."""


class Code(NamedTuple):
    """One code: its class, the sentence for a person, and the advice."""

    class_: str
    says: str
    advice: str


_OUTSIDE: dict[str, Code] = {
    # ---- transient
    "timeout": Code(TRANSIENT, "There was no answer in time.", "Wait and try again; if it is slow by nature, give it a longer `timeout`."),
    "rate_limited": Code(TRANSIENT, "The service gets more requests than it allows.", "Wait; it is tried again when the service says so. Spread the requests if it happens often."),
    "service_unavailable": Code(TRANSIENT, "The service is not available at the moment.", "Wait and try again; if it lasts, ask the operator of the service."),
    "server_error": Code(TRANSIENT, "The service failed with an error of its own.", "Try again later; if it lasts, report it to the operator of the service."),
    "connection_failed": Code(TRANSIENT, "No connection could be made, or it broke.", "Check that the address is right and that the network lets it through, then try again."),
    "invalid_response": Code(TRANSIENT, "The answer could not be read.", "Try again; if it lasts, the service has changed the form of its answers."),
    "deadlock": Code(TRANSIENT, "Two transactions waited for each other.", "Try again; if it happens often, let all transactions touch rows in one order."),
    "file_locked": Code(TRANSIENT, "Another program is using the file.", "Wait until it is done with it, or close that program."),
    "element_not_found": Code(TRANSIENT, "The page does not contain the expected element.", "See whether the page still looks as expected; it may have been changed."),
    "navigation_timeout": Code(TRANSIENT, "The page did not load in time.", "Try again later; see whether the site opens in a browser of your own."),
    # ---- recoverable
    "unauthorized": Code(RECOVERABLE, "The service does not accept the credentials.", "Renew the credentials, or enter new ones."),
    "forbidden": Code(RECOVERABLE, "The credentials do not permit this.", "Ask for the permission, or use an account that has it."),
    "not_found": Code(RECOVERABLE, "The requested resource does not exist.", "Check its name or number; it may have been moved or deleted."),
    "resource_moved": Code(RECOVERABLE, "The requested resource is at another address now.", "Use the new address."),
    "conflict": Code(RECOVERABLE, "Another caller has changed it in the meantime.", "Look at its present state and do it again on top of that."),
    "context_exceeded": Code(RECOVERABLE, "The text is too long for the model.", "Shorten or summarise what the model is given, or use a model that takes more."),
    "model_unavailable": Code(RECOVERABLE, "The model is not available.", "Use another model."),
    "blocked_by_site": Code(RECOVERABLE, "The site refuses visits by a program.", "Use another source, or the official interface of the site."),
    "file_not_found": Code(RECOVERABLE, "The file is not there.", "Check the path; the file may have been moved or renamed."),
    # ---- user_resolvable
    "invalid_input": Code(USER_RESOLVABLE, "The service finds the data not valid.", "Correct what it names and send it again."),
    "answer_invalid": Code(RECOVERABLE, "The model's answer is not what was asked for.", "Read the message; ask for less at once, correct `output_schema`, or use another model."),
    "content_policy": Code(USER_RESOLVABLE, "Content was filtered. Please rephrase your request.", "Say it in other words, without what the provider does not allow."),
    "quota_exceeded": Code(USER_RESOLVABLE, "API quota exceeded. Please upgrade or wait.", "Buy more, or wait until the quota is renewed."),
    "captcha_detected": Code(USER_RESOLVABLE, "CAPTCHA detected. Please solve it manually.", "Take over the browser, solve it, and hand back."),
    "login_required": Code(USER_RESOLVABLE, "Login required. Please authenticate.", "Take over the browser, log in, and hand back."),
    "missing_credentials": Code(USER_RESOLVABLE, "There are no credentials for this service.", "Put them where the tool reads them, such as a secret store, or connect the account; then answer `retry`."),
    "approval_needed": Code(USER_RESOLVABLE, "A person has to approve this first.", "Approve or reject it."),
    # ---- permanent
    "bad_request": Code(PERMANENT, "The service says that the request is wrong.", "Correct the step's parameters; the same request will be refused again."),
    "client_error": Code(PERMANENT, "The service refuses the request.", "Correct the request; the same one will be refused again."),
    "validation_failed": Code(PERMANENT, "The data are not valid.", "Correct the data; the same ones will be refused again."),
    "business_rule": Code(PERMANENT, "A rule of the business does not allow this.", "Change what is asked for so that the rule allows it."),
    "permission_denied": Code(PERMANENT, "The permissions do not suffice.", "Give the worker the permission, and start anew."),
    "constraint_violation": Code(PERMANENT, "The database refuses the data: they break one of its rules.", "Look which rule the message names; a record may exist already."),
    "rejected": Code(PERMANENT, "A person has said no.", "Let `catch` go on from `rejected`, or ask the person why."),
    # ---- catastrophic
    "disk_full": Code(CATASTROPHIC, "There is no space left on the disk.", "Make room or add some, then let the saga go on."),
    "out_of_memory": Code(CATASTROPHIC, "There is not enough memory.", "Give the worker more memory, or let the step do less at once."),
    "database_down": Code(CATASTROPHIC, "The database is down.", "Bring it back, then let the saga go on."),
    # ---- unknown
    "unknown": Code(UNKNOWN, "Something failed, and nothing says why.", "Read the message and the worker's log."),
}  # fmt: skip

_ENGINE: dict[str, Code] = {
    # ---- tools
    "tool_error": Code(UNKNOWN, "The tool raised an error.", "Read the message; the worker's log says where it was raised."),
    "tool_defect": Code(PERMANENT, "The tool raised an error that says that its code is wrong.", "Correct the tool at the line that the message names, and deploy it: the saga goes on by itself."),
    "function_defect": Code(PERMANENT, "The workflow function has a mistake in its code.", "Correct the function at the line that the message names, and deploy it: the saga goes on by itself."),
    "function_blocks": Code(PERMANENT, "The workflow function computes for too long between two operations.", "Put what takes long into a step, and deploy it: the saga goes on by itself."),
    "function_changed": Code(PERMANENT, "The workflow function asks for other operations than the saga has done.", "Deploy code that asks for the operations that the message names, in that order: the saga goes on by itself."),
    "tool_not_listed": Code(PERMANENT, "The workflow function calls a tool that its code did not name when it was registered.", "Name the tool in `@workflow(…, tools=[…])`, and deploy it."),
    "tool_crashed": Code(UNKNOWN, "The process that ran the tool died.", "See whether the tool needs more memory; the worker's log says how it died."),
    "breaker_open": Code(TRANSIENT, "The target of the call is down, and calls to it are held back.", "Wait: the step goes on when the target answers again. `baton breakers show` says what is wrong; a failover policy for this code says what is done instead."),
    "callback_over": Code(PERMANENT, "The saga no longer waits for the external work.", "Stop that work; the message says why."),
    "link_over": Code(PERMANENT, "The link for answering the question is no longer valid.", "Have people told again: the newest link counts."),
    "heartbeat_timeout": Code(TRANSIENT, "Work elsewhere has given no sign of life in time.", "See whether it still runs there, and whether it sends heartbeats as often as `callback.heartbeat` says."),
    "agent_exhausted": Code(PERMANENT, "The agent has used up its turns or tokens without an answer.", "Raise `turns` or `tokens`, or ask for less."),
    "call_not_allowed": Code(PERMANENT, "The model asked for a tool, or an operation of an API, that it may not call.", "Add the tool to the agent's `tools` or the operation to its `operations`, or say in its instructions what there is."),
    "too_many_corrections": Code(USER_RESOLVABLE, "Several answers of the model in a short time were invalid.", "See in the log what was wrong. Answer `retry` and it is asked again, or `use` with an output."),
    "too_many_calls": Code(PERMANENT, "The model asked for more calls than it may.", "Raise `calls` or `calls_in_a_turn`."),
    "tool_missing": Code(PERMANENT, "The tool is not in this deployment.", "Deploy the application with it: the saga goes on by itself."),
    "input_invalid": Code(PERMANENT, "The tool was called with arguments that it does not take.", "Correct the tool and deploy it: the saga goes on by itself. Where the step's `with` is wrong, correct the document."),
    "schema_changed": Code(PERMANENT, "A deploy has changed the schema of the tool, and the step does not fit it.", "Deploy a tool that the step fits, or undo the deploy: the saga goes on by itself."),
    "result_invalid": Code(PERMANENT, "The tool's result does not match its type hint.", "Correct the tool, or the type hint of what it returns, and deploy it: the saga goes on by itself."),
    "result_too_large": Code(PERMANENT, "The tool's result is too large.", "Return less, or put it into a bucket and return where it is."),
    "key_incomplete": Code(PERMANENT, "A part of the idempotency key is missing.", "Give the step the parameter that the message names, or change the tool's `key`."),
    "in_progress": Code(TRANSIENT, "Another caller is doing the same at this moment.", "Wait; afterwards there is a result, or it is tried here."),
    "pipeline_invalid": Code(PERMANENT, "A pipeline is not written as it must be.", "Correct each place that the message names."),
    "pipeline_data": Code(PERMANENT, "A step of a pipeline cannot work with the data that it gets.", "Convert or filter what the message names, in a step before."),
    "pipeline_too_large": Code(PERMANENT, "A pipeline has more data or work than it may.", "Filter and select first, or split it."),
    "description_invalid": Code(PERMANENT, "The description of an API cannot be used.", "Do what the message says. One that differs from its hash has changed: see what has, then give `OpenApis` the new hash."),
    "unknown_outcome": Code(USER_RESOLVABLE, "It may have happened, and nothing here can tell.", "Look where it would have happened. Answer `retry` if it has not, `use` with its output if it has."),
    "rows_refused": Code(PERMANENT, "The table does not take the rows of this step.", "Correct the rows that the tool writes with its result."),
    # ---- values and expressions
    "input_unbound": Code(PERMANENT, "A value that the step needs is missing.", "Correct the expression in `with`, or write `?` where there may be nothing."),
    "input_too_large": Code(PERMANENT, "The input of the step is too large.", "Pass on less, or where it can be found."),
    "value_too_large": Code(PERMANENT, "A value made of others became too large.", "Pass on less of them."),
    "output_invalid": Code(PERMANENT, "The output does not match the node's schema.", "Correct the tool and deploy it: the saga goes on by itself. Where `output_schema` is wrong, correct the document."),
    "output_unbound": Code(PERMANENT, "The saga's result names a value that is not there.", "Correct the document's `output`, or write `?` where there may be nothing."),
    "output_too_large": Code(PERMANENT, "The saga's result is too large.", "Give less, or where it can be found."),
    "question_invalid": Code(PERMANENT, "A question cannot be asked with the values that it got.", "Correct the value that the message names."),
    "question_expired": Code(PERMANENT, "No answer to a question came in time.", "Give it longer by `expires`, or let `catch` go on from `question_expired`."),
    "wait_invalid": Code(PERMANENT, "The wait has no valid time.", "Correct the value that the expression gives."),
    "branch_unbound": Code(PERMANENT, "The value that chooses the next node is missing.", "Correct `branch.choose`, or write `?` where there may be nothing."),
    "branch_not_allowed": Code(PERMANENT, "The chosen node is not among the allowed nodes.", "Add the node to `branch.among`, or correct who chooses."),
    "loop_exhausted": Code(PERMANENT, "The loop has used up its rounds.", "Raise `max_iterations`, or give the loop a `timeout_path`."),
    "poll_exhausted": Code(PERMANENT, "The poll used up its tries or its time.", "Look at the last answer in the message. Raise `tries` or `within`, or let `catch` go on from `poll_exhausted`."),
    # ---- joins and children
    "join_failed": Code(PERMANENT, "More of the steps before it failed than it tolerates.", "Look at their failures first."),
    "map_failed": Code(PERMANENT, "More items of a map failed than it tolerates.", "Look at `last_error.batch`, or at the items that the message names."),
    "map_invalid": Code(PERMANENT, "A map cannot begin with what `over` gives.", "Let `over` give a list; one that is too long is for a child workflow for each item, or for several maps."),
    "child_failed": Code(PERMANENT, "A saga that this one had started failed.", "Look at that saga; it names its own cause."),
    "invalid_definition": Code(PERMANENT, "The workflow document has problems.", "Correct the document and register it again."),
    "malformed": Code(PERMANENT, "The text cannot be parsed.", "Correct it at the line that the message names."),
    "too_large": Code(PERMANENT, "It is larger than the limit.", "Send less, or where it can be found."),
    "idempotency_key_reused": Code(PERMANENT, "The same key came with something else.", "Use a new key for a new request."),
    "not_allowed_now": Code(PERMANENT, "The saga's state does not allow this.", "Look at its state first."),
    # ---- conditions
    "condition_invalid": Code(PERMANENT, "A condition is none.", "Correct the condition, or the blob that holds its code."),
    "condition_missing": Code(PERMANENT, "A condition names a value that is not there.", "Ask whether it is there first: `has(...)`, `exists` or `?`."),
    "condition_type": Code(PERMANENT, "A condition compares what cannot be compared.", "Change the operator, or convert the value."),
    "condition_not_boolean": Code(PERMANENT, "A condition says neither yes nor no.", "Make it a comparison."),
    "condition_too_large": Code(PERMANENT, "A condition has too much to look at.", "Name less of the data, or let a tool count."),
    "condition_error": Code(PERMANENT, "A condition broke.", "Change what the message names."),
    "condition_timeout": Code(PERMANENT, "A condition's function took too long.", "Let it do less, or raise its `timeout`."),
    "condition_memory": Code(PERMANENT, "A condition's function took too much memory.", "Let it do less, or raise `max_memory_mb`."),
    # ---- limits
    "limit_fan_out": Code(PERMANENT, "A step went on to more others at once than allowed.", "Raise `limits.fan_out`, or choose fewer."),
    "limit_hops": Code(PERMANENT, "More steps ran than allowed.", "Raise `limits.hops`; see whether it goes round in circles."),
    "limit_wall_time": Code(PERMANENT, "It took longer than allowed.", "Raise `limits.wall_time` or `timeout`."),
    "limit_bytes": Code(PERMANENT, "The outputs are larger than allowed together.", "Raise `limits.bytes`, or let outputs be summarised."),
    "limit_tokens": Code(PERMANENT, "Its models would use more tokens than allowed.", "Raise `limits.tokens`; or shorten the prompt, or lower `max_output`."),
    "limit_cost": Code(PERMANENT, "It cost more than allowed.", "Raise `limits.cost_usd`; see what the steps spent."),
    "limit_retries": Code(PERMANENT, "Steps were tried again more often than allowed.", "See in the log why steps fail, or raise `limits.retries` or `SagaRetries`."),
    "limit_retry_time": Code(PERMANENT, "Steps were tried again for longer than allowed.", "See in the log why steps fail, or raise `limits.retry_time` or `SagaRetryMs`."),
    # ---- money
    "budget_saga": Code(USER_RESOLVABLE, "The saga has spent what it may.", "See what its steps spent, then let it go on with as much again, or raise the setting."),
    "budget_user_day": Code(USER_RESOLVABLE, "The user's sagas have spent what they may in a day.", "It goes on when the day turns (UTC); or raise the setting, then let the saga go on."),
    "user_blocked": Code(USER_RESOLVABLE, "An operator has blocked the user.", "Unblock the user, then let the saga go on; without that it looks again when the day turns (UTC)."),
    "budget_tenant_day": Code(USER_RESOLVABLE, "The tenant's sagas have spent what they may in a day.", "It goes on when the day turns (UTC); or raise the setting, then let the saga go on."),
    "budget_warning": Code(USER_RESOLVABLE, "Most of what may be spent is spent.", "See what the steps spend, and whether that is meant."),
    # ---- the saga
    "cancelled": Code(PERMANENT, "It was cancelled.", "Start it anew if that was not meant."),
    "code_gone": Code(CATASTROPHIC, "The code that the saga stays with is not in the deployment any more.", "Let the saga go on with the newest code, if that asks for the operations that the saga has done."),
    "worker_killed": Code(CATASTROPHIC, "The worker died several times in a row.", "See whether a step needs more memory, then let the saga go on."),
    "over_budget": Code(CATASTROPHIC, "A step needs more time than a worker has.", "Split the step, or raise the worker's timeout, then let the saga go on."),
}  # fmt: skip

CODES: Mapping[str, Code] = _OUTSIDE | _ENGINE
"""Every code with its row."""

ENGINE: frozenset[str] = frozenset(_ENGINE)
"""Codes that only the engine gives, at any kind of node."""

CHILD_FAILED = "child_failed"
"""The code of a node whose child saga has failed, whatever the child's own code."""

UNTRIED: frozenset[str] = frozenset(
    code for code in _ENGINE if code.startswith(("branch_", "budget_", "condition_", "limit_", "question_"))
) | {
    "child_failed", "input_unbound", "join_failed", "loop_exhausted", "map_failed", "map_invalid", "output_too_large", "output_unbound",
    "code_gone", "over_budget", "value_too_large", "wait_invalid", "worker_killed",
}  # fmt: skip
"""Codes of failures that the engine finds before or after attempts.

They are neither retried nor asked about.
"""

ALIASES: Mapping[str, str] = {
    "authentication_failed": "unauthorized",
    "unauthenticated": "unauthorized",
    "context_length_exceeded": "context_exceeded",
    "content_filtered": "content_policy",
    "content_filter": "content_policy",
    "too_many_requests": "rate_limited",
    "rate_limit": "rate_limited",
    "llm_rate_limit": "rate_limited",
    "network_error": "connection_failed",
    "internal_server_error": "server_error",
}
"""Other spellings of codes."""


class FailureAdvice(NamedTuple):
    """The text about a failure for a person: the event, and the advice."""

    says: str
    advice: str


def class_of(code: str) -> str:
    """Return the class of a code: `unknown` for a code outside of the table."""
    return CODES[code].class_ if code in CODES else UNKNOWN


def advice_for(code: str) -> FailureAdvice:
    """Return a sentence and advice, for any code."""
    row = CODES.get(code)
    return (
        FailureAdvice(row.says, row.advice)
        if row
        else FailureAdvice(f"The step failed with `{code}`.", "Read its message.")
    )


SCHEMA_CHANGED = "schema_changed"
TOOL_DEFECT, INPUT_INVALID, OUTPUT_INVALID = "tool_defect", "input_invalid", "output_invalid"
FUNCTION_DEFECT, FUNCTION_CHANGED, FUNCTION_BLOCKS = "function_defect", "function_changed", "function_blocks"

DEFECTS: Mapping[str, str] = {
    INPUT_INVALID: "The arguments of a call do not fit the parameters of its tool.",
    SCHEMA_CHANGED: "A deploy has changed the schema of a tool, and a step of an open saga does not fit it.",
    "result_invalid": "The result of a tool does not match its type hint.",
    OUTPUT_INVALID: "The result of a tool does not match the `output_schema` of its node.",
    "tool_missing": "The tool is not in the deployment.",
    TOOL_DEFECT: "The tool raised one of the errors of Python below.",
    FUNCTION_DEFECT: "A workflow function raised one of these errors, or waits for what is no operation.",
    FUNCTION_BLOCKS: "A workflow function computes for more than 10 s between two operations.",
    FUNCTION_CHANGED: "A workflow function asks for other operations than the log has.",
}
"""Defects of code, each with a description."""

ERRORS = (
    *("AssertionError", "AttributeError", "ImportError", "IndentationError", "IndexError", "KeyError"),
    *("ModuleNotFoundError", "NameError", "NotImplementedError", "RecursionError", "SyntaxError", "TabError"),
    *("TypeError", "UnboundLocalError", "ZeroDivisionError"),
)
"""Errors of Python itself that are bugs.

A class of an application or a library that is derived from one is not on the list: it was raised on purpose.
"""


def is_on_purpose(code: str, kind: str) -> bool:
    """Return true if a tool itself gave the code of a defect: a failure found by the engine has no class
    `kind` from a tool.
    """
    return code in DEFECTS and code != TOOL_DEFECT and bool(kind)


def is_bug(exceptions: Sequence[str]) -> bool:
    """Return true if the first of these names, the error's own, is that of a bug."""
    return bool(exceptions) and exceptions[0] in ERRORS


DOUBTFUL = frozenset({TRANSIENT, CATASTROPHIC, UNKNOWN})
"""Classes of failures after which the effect may have happened: the answer is missing, or is no evidence.

The others refuse.
"""

BY_CODE: Mapping[str, bool] = {
    # It was refused, and the same may be accepted later.
    "rate_limited": False,
    "deadlock": False,
    "file_locked": False,
    "element_not_found": False,
    # No call was made.
    "breaker_open": False,
    "in_progress": False,
    # The tool did return: only what it returned is of no use.
    "result_invalid": True,
    # It was raised somewhere in the tool: before it acted, or after.
    "tool_defect": True,
    "result_too_large": True,
    "rows_refused": True,
    "output_invalid": True,
    "cancelled": True,
    # Another caller with the same key is at it.
    "conflict": True,
}
"""Codes that differ from their class; true: the code leaves a doubt."""


def leaves_doubt(code: str, class_: str = "", happened: bool | None = None) -> bool:
    """Return true if the effect may have happened. `happened` is the report of the tool itself.

    An effect that certainly happened without a result is a doubt, too: its result is unknown.
    """
    if happened is not None:
        return happened
    code = ALIASES.get(code, code)
    return BY_CODE.get(code, (class_ or class_of(code)) in DOUBTFUL)


def says_nothing(code: str, class_: str, status: int, *, doubt: bool, refused: bool) -> bool:
    """Return true if a failed call had no answer, or an inconclusive one: its effect may have happened.

    `refused`: the effect is known not to have happened.
    """
    if refused:
        return False
    return doubt or code == "timeout" or status >= 500 or leaves_doubt(code, class_)
