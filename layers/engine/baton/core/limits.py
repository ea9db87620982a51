"""Every number that the engine works with, in one place: what it is for, its default, and its bounds.

Those of the sections can be set when the engine is deployed (settings.py says by
whom); those of `Limits` itself are part of the protocols, and the same everywhere.
What the storage of an adapter or a format allows stands where it is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from msgspec import Meta

LONGEST_INVOCATION_MS = 900_000  # AWS's own bound
DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Failing:
    """Limits of retries of a failed step."""

    retry_inside_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=60_000,
            description="Longest pause between two attempts that an invocation waits for; for a longer one it lets "
            "the saga go.",
        ),
    ] = 2_000
    breaker_failures: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="Failures of a target within a minute at which its circuit breaker opens, if they are at least half of "
            "its calls.",
        ),
    ] = 5
    breaker_pause_ms: Annotated[
        int,
        Meta(
            ge=1_000,
            le=3_600_000,
            description="Time for which an open circuit breaker lets no call through. The pause doubles with each probe that fails, up to five "
            "minutes, or to this if it is more.",
        ),
    ] = 30_000


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Retrying:
    """Retries of a step and of a saga whose document says nothing else."""

    retry_policy: Annotated[
        str,
        Meta(
            pattern="^(critical|standard|quick|rate_limited|immediate|none)$",
            description="Preset of the retries of a failure for which neither the document nor the failure matrix has a policy of its own.",
        ),
    ] = "standard"
    saga_retries: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Retries of all steps of a saga together, if its document has no `limits.retries`. 0: any number.",
        ),
    ] = 0
    saga_retry_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=31_536_000_000,
            description="Time of these retries together, pauses included, if its document has no `limits.retry_time`. 0: any "
            "time.",
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Registration:
    """Values that fill in a document when it is registered. Its workflow keeps them."""

    saga_timeout_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=31_622_400_000,
            description="Longest time of a saga whose document has neither `timeout` nor `limits.wall_time`, when it is "
            "registered. 0: as long as `SagaDays`.",
        ),
    ] = 0
    undo_attempts: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="Attempts of an inverse whose document has no `compensate.retry`, when it is registered.",
        ),
    ] = 5
    undo_ms: Annotated[
        int,
        Meta(
            ge=1_000,
            le=86_400_000,
            description="Time of all attempts of an inverse together, as `UndoAttempts`.",
        ),
    ] = 600_000


ON, OFF = "on", "off"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Replanning:
    """Other ways to do a failed step."""

    replan_attempts: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="Other ways that are tried of a failed step whose rules have no `at_most` for `replan`. 0: none, and "
            "no model suggests one.",
        ),
    ] = 3
    model_replanning: Annotated[
        str,
        Meta(
            pattern=f"^({ON}|{OFF})$",
            description="Suggestions of models, `replan` of a document: with `off` no model is asked how else a failed step can "
            "be done.",
        ),
    ] = ON


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Questions:
    """Time of questions to people."""

    question_timeout_ms: Annotated[
        int,
        Meta(
            ge=1_000,
            le=31_622_400_000,
            description="Time until a question expires for which neither document, tool nor function has `expires`. A `human` "
            "node keeps the one with which its document was registered.",
        ),
    ] = DAY_MS


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LastResort:
    """Settings of a failed step after retries and alternatives."""

    on_failure: Annotated[
        str,
        Meta(
            pattern="^(ask|escalate|fail)$",
            description="Action where the defaults would ask the user about a failed step, and its document says "
            "nothing else: `ask`, `escalate` to on-call, or `fail`. A saga keeps what it was started with.",
        ),
    ] = "ask"
    error_budget_percent: Annotated[
        str,
        Meta(
            pattern=r"^(0|[1-9][0-9]?)(\.[0-9]{1,2})?$",
            description="Percentage of the sagas of a workflow that may fail on a day (UTC). 0: no error budget, and ends are not counted.",
        ),
    ] = "0"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Execution:
    """Settings of the use of an invocation's time."""

    step_timeout_ms: Annotated[
        int,
        Meta(ge=1, le=900_000, description="Time of one attempt of a step whose tool and node name none."),
    ] = 30_000
    step_estimate_ms: Annotated[
        int, Meta(ge=1, le=900_000, description="Expected time of a step that was never seen before.")
    ] = 1_500
    yield_reserve_ms: Annotated[
        int,
        Meta(ge=100, le=60_000, description="Time held back at the end of an invocation for the hand-over."),
    ] = 1_000
    lease_grace_ms: Annotated[
        int,
        Meta(
            ge=100,
            le=7_500,
            description="From the end of a worker to the end of its leases. A worker ends at the hard deadline of its "
            "invocation, or when it could not renew a lease.",
        ),
    ] = 1_000
    lease_ms: Annotated[
        int,
        Meta(
            ge=15_000,
            le=901_000,
            description="Time of a lease that is not renewed: by then, plus the clock skew, the death of its worker is "
            "found. An invocation that may last longer renews its leases at half of it.",
        ),
    ] = 45_000
    clock_skew_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=60_000,
            description="Largest difference between the clocks of two processes. A process that judges the lease, claim, "
            "reservation or heartbeat of another by time waits this much longer.",
        ),
    ] = 3_000
    concurrent_steps: Annotated[
        int,
        Meta(ge=1, le=1_000, description="Steps of one saga that run at the same time in one invocation."),
    ] = 100
    max_deaths: Annotated[
        int,
        Meta(
            ge=1,
            le=10,
            description="Invocations of a saga that may die in a row without any progress, and cut-offs of one "
            "step, before the saga is parked for a person to look at.",
        ),
    ] = 3
    saga_hops: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000_000,
            description="Nodes that may run in a saga with loops before it fails. `limits.hops` of its document may ask for fewer.",
        ),
    ] = 100_000
    turn_ms: Annotated[
        int,
        Meta(
            ge=1_000,
            le=900_000,
            description="Time for which an invocation goes on beginning steps while other wakes wait for a worker. Its sagas "
            "then go to the end of the line.",
        ),
    ] = 10_000
    nesting_depth: Annotated[
        int, Meta(ge=1, le=32, description="Depth to which sagas may start sagas that start sagas.")
    ] = 8
    news_every_ms: Annotated[
        int,
        Meta(
            ge=100,
            le=60_000,
            description="Interval at which an invocation with running steps looks for news, such as a cancel.",
        ),
    ] = 5_000
    loop_blocked_ms: Annotated[
        int,
        Meta(
            ge=50,
            le=60_000,
            description="Time for which a tool may hold the event loop, on which all sagas of an invocation run, before the "
            "worker's log and the metric `LoopBlocked` name it.",
        ),
    ] = 1_000
    snapshot_tail_bytes: Annotated[
        int,
        Meta(
            ge=1_024, le=1_048_576, description="Log that may pile up before the next snapshot is considered."
        ),
    ] = 8_192


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Effects:
    """Settings of the retention of results of tools that may act only once."""

    effect_ttl_days: Annotated[
        int,
        Meta(
            ge=1,
            le=3_650,
            description="Time for which the result of an action that may happen only once is kept, and given to later "
            "calls of the same action. At least as long as a saga may last.",
        ),
    ] = 400
    effect_retry_ms: Annotated[
        int,
        Meta(
            ge=1_000,
            le=31_536_000_000,
            description="From the first try of an inverse that may act only once and has failed: how long a rollback calls it "
            "again. Afterwards a person is asked first.",
        ),
    ] = 604_800_000


_USD = r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$"  # up to 999,999.999999 dollars


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Money:
    """Limits of the money that tools may spend; 0: any amount."""

    saga_budget_usd: Annotated[
        str,
        Meta(pattern=_USD, description="Dollars that a saga may spend before it is parked. 0: any number."),
    ] = "1.00"
    user_day_budget_usd: Annotated[
        str, Meta(pattern=_USD, description="Dollars that a user may spend on a day (UTC). 0: any number.")
    ] = "5.00"
    tenant_day_budget_usd: Annotated[
        str, Meta(pattern=_USD, description="Dollars that a tenant may spend on a day (UTC). 0: any number.")
    ] = "0"
    budget_warning_percent: Annotated[
        int, Meta(ge=1, le=100, description="Percentage of any of them at which people are warned.")
    ] = 80


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Liveness:
    """Intervals between checks of an unfinished saga to which nothing happens."""

    sweep_shortest_ms: Annotated[
        int,
        Meta(
            ge=60_000,
            le=604_800_000,
            description="First look at a saga that waits for nothing but others; the time doubles from look to look. One "
            "with open children or unsent notices is looked at after five minutes, or after this if it is less.",
        ),
    ] = 3_600_000
    sweep_longest_ms: Annotated[
        int,
        Meta(
            ge=300_000,
            le=604_800_000,
            description="Longest time between two looks; never less than the first.",
        ),
    ] = 86_400_000


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Lifetime:
    """Lifetime of sagas and of their stored data."""

    saga_days: Annotated[
        int,
        Meta(
            ge=1,
            le=3_650,
            description="Days that a saga may last before it fails, whatever its document says. A saga keeps what it was "
            "started with.",
        ),
    ] = 366
    retention_days: Annotated[
        int,
        Meta(
            ge=2,
            le=3_650,
            description="Further days, after `SagaDays`, until everything that is stored of a saga is deleted: head, log, "
            "snapshots, values.",
        ),
    ] = 90


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Values:
    """Limits of the size of the values that steps return."""

    inline_bytes: Annotated[
        int,
        Meta(
            ge=256,
            le=8_192,
            description="A value up to this size stays in its entry; a larger one goes to the bucket.",
        ),
    ] = 8_192
    result_bytes: Annotated[
        int, Meta(ge=1_024, le=52_428_800, description="Largest input, output or payload.")
    ] = 5_242_880


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SignalLimits:
    """Limits of the signals that a saga keeps."""

    signals_kept: Annotated[
        int,
        Meta(
            ge=1, le=1_000, description="Signals of a saga that no wait has taken yet; one more is refused."
        ),
    ] = 100


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class People:
    """Limits of questions to people."""

    pending_per_person: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="Open questions of which one person is told at once; others are told when one is over. 0: any number.",
        ),
    ] = 10


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Tenants:
    """Limits of one tenant, which leave capacity to the others."""

    tenant_sagas: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Sagas of one tenant that are at work at once, children included; those that wait do not count. "
            "A caller's start is then refused, a child's is put off.",
        ),
    ] = 5_000


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Stores:
    """Retries of a store that asks for a pause or does not answer."""

    store_pause_first_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=2_000,
            description="First pause before a call to a store is repeated; it doubles, with jitter.",
        ),
    ] = 20
    store_pause_longest_ms: Annotated[
        int,
        Meta(ge=20, le=60_000, description="Longest such pause. The end of the invocation ends them all."),
    ] = 2_000


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Estimates:
    """Facts about the worker for code that runs elsewhere."""

    worker_timeout_s: Annotated[
        int,
        Meta(
            ge=3,
            le=900,
            description="Seconds that an invocation of the worker may last. A workflow with steps that may take longer "
            "is registered with a note.",
        ),
    ] = 60
    worker_memory_mb: Annotated[
        int, Meta(ge=256, le=10_240, description="Memory of the worker, by which AWS bills a saga's time.")
    ] = 1_024


NEWEST, PINNED = "newest", "pinned"
"""Choices of the code with which a workflow function goes on after a deploy."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FunctionCode:
    """Code of workflow functions."""

    function_code: Annotated[
        str,
        Meta(
            pattern=f"^({NEWEST}|{PINNED})$",
            description="Code with which a saga of a workflow function goes on after a deploy: the `newest`, or `pinned`, "
            "the code that it began with.",
        ),
    ] = NEWEST


OPERATOR, SETTING = "operator", "setting"
"""Approvers of an alias for a parameter of a tool."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Agents:
    """Calls of agents."""

    alias_approval: Annotated[
        str,
        Meta(
            pattern=f"^({OPERATOR}|{SETTING})$",
            description="Approval of an alias for the name of a parameter that models mistake: an `operator` decides, or "
            "this `setting` approves it once models have made the same mistake in five sagas.",
        ),
    ] = OPERATOR


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Code:
    """Identity of the deployed code."""

    build: Annotated[
        str,
        Meta(
            max_length=500,
            description="Identity of the deployed code: sagas that are parked for a defect are tried again when it "
            "changes. Empty: it is not known, and a person lets them go on.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class Limits(
    Execution,
    Failing,
    Retrying,
    Registration,
    Replanning,
    Questions,
    LastResort,
    Effects,
    Money,
    Liveness,
    Lifetime,
    Values,
    SignalLimits,
    People,
    Tenants,
    Stores,
    Estimates,
    FunctionCode,
    Agents,
    Code,
):
    """All limits of a deployment: the sections above, and constants. Times in ms, sizes in bytes.
    Times in ms, sizes in bytes.

    start_due: time until a started saga is due. busy_sweep: first look at a saga that may have missed more
    than a wake. compile: a document that takes longer is refused. fork_deadline: how long a caller has for a
    fork. timer_by_message: the longest delay of a message in SQS. entry: the most that the events of one
    entry may have together. answer: the least time left of an invocation when it gives up on a store and says
    so. fault_pause: until a saga is tried again after a fault of the engine. unreadable_pause: the same for a
    saga whose log this version cannot read. parked_look: from look to look at a saga that is parked for a
    defect; the reconciler tells by it when one was last tried. room_pause: until a step that found no room in
    its process asks again, doubling from first to longest. throttle_pause: between two steps behind a limit
    that throttles. children_at_once: port calls for children side by side. child_pause: until children are
    started for which their tenant has no room. called_off_grace: for the running steps of a child that a
    signal calls off. report_kept: how long it stands in an inbox that a child has ended; a parent that has
    not looked for so long asks its children itself. telling: how long a try to tell a person lasts.
    untold_end: how long an unsent notice holds up the end of its saga. give_up: a channel that has not taken
    a notice by then is not asked again. effect_grace: after the time of an attempt, until other workers may
    conclude that it did not record its end. effect_pause: until a step that waits for another's effect looks
    again, doubling from first to longest. snapshot_blob: a snapshot with more JSON is a blob. snapshot: how
    long it may hold up the release of its saga. Packed to a quarter it would cost 16 write units, twice the
    PUT, whereas a GET makes each resume 20 to 30 ms longer; and no store takes items of any size.
    """

    start_due_ms: int = 45_000
    busy_sweep_ms: int = 300_000
    fork_deadline_ms: int = 45_000
    timer_by_message_ms: int = 900_000
    entry_bytes: int = 196_608
    answer_ms: int = 200
    fault_pause_ms: int = 60_000
    unreadable_pause_ms: int = 3_600_000
    parked_look_ms: int = DAY_MS
    room_pause_first_ms: int = 50
    room_pause_longest_ms: int = 2_000
    throttle_pause_ms: int = 1_000
    children_at_once: int = 8
    child_pause_ms: int = 15_000
    called_off_grace_ms: int = 30_000
    report_kept_ms: int = 604_800_000
    telling_ms: int = 5_000
    untold_end_ms: int = 300_000
    give_up_ms: int = 259_200_000
    effect_grace_ms: int = 5_000
    effect_pause_first_ms: int = 50
    effect_pause_longest_ms: int = 2_000
    snapshot_blob_bytes: int = 65_536
    snapshot_ms: int = 2_000
    compile_ms: int = 2_000

    def __post_init__(self) -> None:
        if self.store_pause_first_ms > self.store_pause_longest_ms:
            raise ValueError("store_pause_first_ms must not be above store_pause_longest_ms")
        for look in ("sweep_shortest_ms", "sweep_longest_ms"):
            if self.retention_days * DAY_MS <= getattr(self, look):
                raise ValueError(
                    f"retention_days must be longer than {look}: no saga expires before it is looked at"
                )

    @property
    def pins(self) -> str:
        """Build with which a saga of a workflow function stays that begins here; empty: with none."""
        return self.build if self.function_code == PINNED else ""

    def within(self, item_bytes: int) -> Limits:
        """Return the limits for a store whose items have at most `item_bytes` bytes.

        The events of an entry, and a snapshot, may have half of it.
        """
        most = item_bytes // 2
        if max(self.entry_bytes, self.snapshot_blob_bytes) <= most:
            return self
        entry, snapshot = min(self.entry_bytes, most), min(self.snapshot_blob_bytes, most)
        return replace(self, entry_bytes=entry, snapshot_blob_bytes=snapshot)

    @classmethod
    def of(cls, config: object) -> Limits:
        """Return the limits with the values of a configuration.
        Raises `ValueError` for values that cannot go together.
        """
        given: dict[str, Any] = {
            field.name: getattr(config, field.name) for field in fields(cls) if hasattr(config, field.name)
        }
        return cls(**given)


USUAL = Limits()
"""The limits of a deployment that sets none."""
