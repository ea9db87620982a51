"""The failure matrix: by domain and code, the reaction to a failure unless the author gives another.

The fields of an entry are in policy.py. The rules of a document are laid over these defaults in
strategies/ladder.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from baton.core.failures.codes import (
    CATASTROPHIC,
    DEFECTS,
    PERMANENT,
    RECOVERABLE,
    TRANSIENT,
    UNKNOWN,
    USER_RESOLVABLE,
)
from baton.core.failures.policy import (
    ASK,
    EXPONENTIAL,
    FAIL,
    FIXED,
    JITTERED,
    PRESETS,
    Change,
    PolicyEntry,
    RetryChange,
    Rules,
)

RETRY, REPLAN, ASK_USER, ROLLBACK, ESCALATE = "retry", "replan", "ask_user", "rollback", "escalate"
RETRY_BUDGET_MS = 1_800_000

LAST: Mapping[str, tuple[str, ...]] = {
    ASK: (ASK_USER, ROLLBACK, ESCALATE),
    ESCALATE: (ESCALATE, ROLLBACK),
    FAIL: (),
    ROLLBACK: (ROLLBACK,),
}
"""The strategies after those that ask no person and undo nothing, by the word that selects them."""

DEPLOYED = (ASK, ESCALATE, FAIL)
"""The words of a deployment. Its `fail` undoes, too, because no document gives another reaction."""


def _retries(count: int, backoff: str, base_ms: int, max_delay_ms: int) -> RetryChange:
    return RetryChange(
        max_attempts=count + 1,
        backoff=backoff,
        base_ms=base_ms,
        max_delay_ms=max_delay_ms,
        budget_ms=RETRY_BUDGET_MS,
    )


# ---- by class, whatever the domain ---------------------------------------------------------------------------------

DEFAULTS: Mapping[str, PolicyEntry] = {
    TRANSIENT: PolicyEntry(
        kind=TRANSIENT, ladder=(RETRY, REPLAN, ASK_USER, ROLLBACK, ESCALATE), policy=PRESETS["standard"]
    ),
    RECOVERABLE: PolicyEntry(
        kind=RECOVERABLE, ladder=(REPLAN, ASK_USER, ROLLBACK, ESCALATE), policy=PRESETS["standard"]
    ),
    USER_RESOLVABLE: PolicyEntry(
        kind=USER_RESOLVABLE, ladder=(ASK_USER, ROLLBACK, ESCALATE), policy=PRESETS["standard"]
    ),
    PERMANENT: PolicyEntry(kind=PERMANENT, ladder=(ROLLBACK, ESCALATE), policy=PRESETS["standard"]),
    # A person first: while the system underneath is broken, undoing would fail, too.
    CATASTROPHIC: PolicyEntry(
        kind=CATASTROPHIC,
        ladder=(ESCALATE, ROLLBACK),
        policy=PRESETS["standard"],
        at_most={ESCALATE: 1},
        severity="critical",
    ),
    UNKNOWN: PolicyEntry(
        kind=UNKNOWN,
        ladder=(RETRY, REPLAN, ASK_USER, ROLLBACK, ESCALATE),
        policy=msgspec.structs.replace(PRESETS["standard"], max_attempts=4),
    ),
}

# ---- by code, whatever the domain ----------------------------------------------------------------------------------

GENERAL: Rules = {
    "unauthorized": Change(hints=("refresh_credentials",)),
    "forbidden": Change(hints=("refresh_credentials", "request_permissions")),
    "not_found": Change(hints=("find_alternative_resource",)),
    "resource_moved": Change(hints=("find_alternative_resource",)),
    "conflict": Change(
        ladder=(RETRY, REPLAN, ASK_USER, ROLLBACK, ESCALATE), before_retry=("refresh_and_retry",)
    ),
    "rate_limited": Change(retry=RetryChange(preset="rate_limited"), hints=("alternative_provider",)),
    "service_unavailable": Change(
        retry=_retries(5, EXPONENTIAL, 1_000, 30_000), hints=("alternative_provider",)
    ),
    "server_error": Change(retry=_retries(3, EXPONENTIAL, 1_000, 30_000)),
    "content_policy": Change(hints=("rephrase_request",)),
    "captcha_detected": Change(question="browser_takeover"),
    "login_required": Change(question="browser_takeover"),
    "missing_credentials": Change(question="input"),
    "approval_needed": Change(question="approval"),
    "context_exceeded": Change(hints=("truncate_context", "summarise_context", "chunk_context")),
    "model_unavailable": Change(hints=("fallback_model",)),
    "file_not_found": Change(hints=("alternative_path",)),
    "blocked_by_site": Change(hints=("alternative_source",)),
    # Neither undone nor given up before a person has said whether there is anything to undo.
    "unknown_outcome": Change(ladder=(ASK_USER, ESCALATE), severity="high"),
    # Nothing is undone and nothing is tried again because code is wrong.
    **{code: Change(ladder=(ESCALATE,), severity="high") for code in DEFECTS},
}

# ---- by domain ---------------------------------------------------------------------------------------------------

MATRIX: Mapping[str, Rules] = {
    "model_call": {
        "transient": Change(retry=_retries(5, EXPONENTIAL, 1_000, 30_000), hints=("fallback_model",)),
        # The answer says how long to wait; a minute when it does not.
        "rate_limited": Change(retry=_retries(10, FIXED, 60_000, 60_000), hints=("fallback_model",)),
        "context_exceeded": Change(
            hints=("truncate_context", "summarise_context", "chunk_context", "fallback_model")
        ),
        # The next attempt tells the model what was wrong.
        "answer_invalid": Change(
            ladder=(RETRY, ASK_USER, ROLLBACK, ESCALATE), retry=_retries(3, FIXED, 0, 0)
        ),
        "content_policy": Change(message="Content was filtered. Please rephrase your request."),
        "model_unavailable": Change(hints=("fallback_model",)),
    },
    "browser_action": {
        "element_not_found": Change(retry=_retries(3, FIXED, 2_000, 2_000), before_retry=("refresh_page",)),
        "navigation_timeout": Change(retry=_retries(2, FIXED, 5_000, 5_000)),
        "captcha_detected": Change(
            question="browser_takeover", message="CAPTCHA detected. Please solve it manually."
        ),
        "login_required": Change(question="browser_takeover", message="Login required. Please authenticate."),
        "blocked_by_site": Change(hints=("alternative_source",)),
    },
    "file_operation": {
        "permission_denied": Change(message="Insufficient permissions"),
        "disk_full": Change(severity="critical"),
        "file_not_found": Change(hints=("alternative_path",)),
        "file_locked": Change(retry=_retries(5, EXPONENTIAL, 500, 10_000)),
    },
    "external_api": {
        "unauthorized": Change(hints=("refresh_credentials",)),
        "quota_exceeded": Change(message="API quota exceeded. Please upgrade or wait."),
        "service_unavailable": Change(retry=_retries(5, EXPONENTIAL, 5_000, 60_000)),
        "invalid_response": Change(
            retry=_retries(2, EXPONENTIAL, 1_000, 30_000), before_retry=("clear_cache",)
        ),
    },
    "database": {
        "connection_failed": Change(retry=_retries(10, EXPONENTIAL, 1_000, 30_000)),
        "deadlock": Change(retry=_retries(3, JITTERED, 100, 1_000)),
        "constraint_violation": Change(message="Data integrity violation"),
        "timeout": Change(retry=_retries(2, EXPONENTIAL, 1_000, 30_000), before_retry=("optimize_query",)),
    },
}
