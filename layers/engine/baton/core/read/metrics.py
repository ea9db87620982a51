"""From the events of a log to figures of its attempts: retries by tool,
errors by code, time lost; and their documents.

What is counted, and the form in which CloudWatch reads it out of a log line.
When and where it is written is in runtime/invocation/watch.py.

The form is the "Embedded metric format" of the CloudWatch user guide:
the line is one JSON object and nothing else; its
`_aws` has a `Timestamp` (epoch ms) and `CloudWatchMetrics`, a list of namespace, sets of dimensions (30 keys
in one at
most) and metrics (100 at most); every dimension and every metric is a member
of the object itself, a text or a number, or a list of up to 100 numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.core.failures.names import code_of
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import UNANSWERED
from baton.core.models.usage import Usage
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.failures.strategies import registry
else:
    registry = OnDemand("baton.core.failures.strategies.registry")

NAMESPACE = "Baton"
COUNT, MS = "Count", "Milliseconds"
MOST_VALUES = 100
LONGEST_DIMENSION = 250  # CloudWatch takes 1,024; a hundred or two are enough to be told apart

Sets = tuple[tuple[str, ...], ...]
_BY_TOOL: Sets = (("function", "workflow"), ("function", "tool"))
_BY_WORKFLOW: Sets = (("function",), ("function", "workflow"))
_BY_MODEL: Sets = (("function", "model"),)
_OF_ALL: Sets = (("function",),)

METRICS: Mapping[str, tuple[str, Sets, str]] = {
    "Attempts": (COUNT, _BY_TOOL, "attempts that came to an end, by success or by failure"),
    "Retries": (COUNT, _BY_TOOL, "of these, all that were not the first of their step; `Retries / Attempts` is the retry rate"),
    "Succeeded": (COUNT, _BY_TOOL, "steps that succeeded"),
    "Failed": (COUNT, _BY_TOOL, "steps that failed for good"),
    "Timeouts": (COUNT, _BY_TOOL, "attempts that had no answer within their `timeout`"),
    "CacheHits": (COUNT, _BY_TOOL, "steps of a tool with a `cache` that took a kept result"),
    "CacheMisses": (COUNT, _BY_TOOL, "steps of such a tool that have called it"),
    "AttemptsUntilSuccess": (COUNT, _BY_TOOL, "of a step that succeeded, but not at once: how many attempts it took"),
    "WorkTime": (MS, _BY_TOOL, "time of attempts that succeeded"),
    "FailedTime": (MS, _BY_TOOL, "time of attempts that failed"),
    "PauseTime": (MS, _BY_TOOL, "pauses before retries; `FailedTime + PauseTime` is what retrying took"),
    "Replans": (COUNT, _BY_TOOL, "steps that were tried another way"),
    "Questions": (COUNT, _BY_TOOL, "people who were asked"),
    "Escalations": (COUNT, _BY_TOOL, "failures of steps that became incidents"),
    "Parked": (COUNT, (("function", "code"), ("function", "workflow", "code")), "sagas that were parked: nothing more begins until a person lets them go on, or their time comes"),
    "RolledBack": (COUNT, _BY_WORKFLOW, "sagas that have undone what they had done"),
    "RollbacksFailed": (COUNT, _BY_WORKFLOW, "sagas of which something could not be undone"),
    "Held": (COUNT, _BY_WORKFLOW, "times a step was held back, without an attempt: by a circuit breaker, or because others hold the money that it needs"),
    "BreakerOpened": (COUNT, (("function",), ("function", "breaker")), "times a circuit breaker opened"),
    "SagasCompleted": (COUNT, _BY_WORKFLOW, "sagas that completed; with an error budget only"),
    "SagasFailed": (COUNT, _BY_WORKFLOW, "sagas that failed or were rolled back; with an error budget only"),
    "TicksSkipped": (COUNT, _BY_WORKFLOW, "ticks of schedules that started nothing, because a saga of the schedule was still at work (`overlap: skip`)"),
    "TicksMissed": (COUNT, _BY_WORKFLOW, "ticks of schedules that were too late to be started: more of them than `catch_up` allows, after an outage"),
    "TicksRefused": (COUNT, _BY_WORKFLOW, "ticks of schedules whose start was refused, because of a limit or for what is wrong with it"),
    "EventsUnmatched": (COUNT, _OF_ALL, "events from outside that no rule was for"),
    "EventsUnreached": (COUNT, _OF_ALL, "rules for a signal whose event reached no saga, because none has its correlation key"),
    "EventsRefused": (COUNT, _OF_ALL, "rules that could not do what they say for an event, now or at all"),
    "LoopBlocked": (COUNT, (("function",), ("function", "tool")), "times an `async` tool held the event loop for longer than `LoopBlockedMs`"),
    "DeadMessages": (COUNT, _OF_ALL, "messages that no function could handle, as the reconciler finds them"),
    "DeadLetters": (COUNT, _OF_ALL, "dead letters that are pending, 1,000 at most; there are no figures while there are none"),
    "DeadLetterAge": (MS, _OF_ALL, "for how long the oldest of them has been pending"),
    "InputTokens": (COUNT, _BY_MODEL, "tokens that a model has read, those that its provider still had inside"),
    "OutputTokens": (COUNT, _BY_MODEL, "tokens that a model has written, reasoning inside"),
    "ModelTime": (MS, _BY_MODEL, "time of an attempt in which a model has answered, whether the answer was of use or not"),
    "Errors": (COUNT, (("function", "code"), ("function", "tool", "code")), "failures of attempts, and of steps without one"),
}  # fmt: skip
"""Every metric: its unit, its sets of dimensions, and what it counts.
A set of which a figure has not every dimension is left out of it.
"""

_QUIET = frozenset(
    {
        "Attempts",
        "Succeeded",
        "WorkTime",
        "CacheHits",
        "CacheMisses",
        "SagasCompleted",
        "InputTokens",
        "OutputTokens",
        "ModelTime",
    }
)
"""Metrics that report no failure: they may wait for their minute, and are lost with their process."""

_ENDS = {
    "completed": "SagasCompleted",
    **dict.fromkeys(("failed", "rolled_back", "rollback_failed"), "SagasFailed"),
}
# A rate needs both of its figures: what is missing is no zero to CloudWatch.
_BESIDE = {
    "CacheHits": "CacheMisses",
    "CacheMisses": "CacheHits",
    "Attempts": "Retries",
    "SagasCompleted": "SagasFailed",
    "SagasFailed": "SagasCompleted",
}

Document = dict[str, Any]
About = tuple[str, str] | tuple[()]


class Tally:
    """Figures of one tool in one workflow since `since` (epoch ms).

    A figure has a name and, where it is about one more thing, that dimension: `("code", "timeout")`.
    """

    def __init__(self, since: int) -> None:
        self.since = since
        self.sums: dict[tuple[str, About], int] = {}
        self.values: dict[tuple[str, About], list[int]] = {}

    @property
    def is_quiet(self) -> bool:
        """True if everything succeeded at its first attempt."""
        return all(name in _QUIET for name, _ in (*self.sums, *self.values))

    def add(self, name: str, value: int = 1, about: About = ()) -> None:
        """Add to the sum of a metric."""
        self.sums[name, about] = self.sums.get((name, about), 0) + value

    def note(self, name: str, value: int, about: About = ()) -> None:
        """Count one value of a metric of which each counts, for its average and its percentiles."""
        self.values.setdefault((name, about), []).append(value)

    def fail(self, failure: ev.Failure) -> None:
        self.add("Errors", about=("code", code_of(failure.code)))

    def ask(self, usage: Sequence[Usage], lasted: int) -> None:
        usage = [one for one in usage if one.model != UNANSWERED]
        for one in usage:
            self.add("InputTokens", one.input, ("model", one.model))
            self.add("OutputTokens", one.output, ("model", one.model))
        if usage:
            self.note("ModelTime", lasted, ("model", usage[-1].model))


class Figures:
    """Metrics of log entries, summed up until they are taken."""

    def __init__(self, *, counts_ends: bool = False) -> None:
        self._counts_ends = counts_ends
        self._tallies: dict[tuple[str, str], Tally] = {}

    def heard(self, workflow: str, events: Iterable[ev.Event], now: int) -> None:
        """Count the events of an entry that was appended at `now`, to the log of a saga of this workflow."""
        tools: dict[str, str] = {}
        for event in events:
            if isinstance(event, ev.StepSucceeded):
                _succeeded(self._tally(workflow, event.tool, now), event)
            elif isinstance(event, ev.AttemptFailed):
                tools[event.slot] = event.tool
                _failed_attempt(self._tally(workflow, event.tool, now), event)
            elif isinstance(event, ev.StepFailed):
                self._step_failed(self._tally(workflow, event.tool, now), event)
            elif isinstance(event, ev.StrategyChosen):
                # One that follows an unanswered question does not say which tool it is about.
                tool = tools.get(event.slot, "")
                tally = self._tally(workflow, tool, now)
                if metric := _metric_of(event.strategy):
                    tally.add(metric)
                elif event.due_at > event.at:
                    tally.add("PauseTime", event.due_at - event.at)
            elif isinstance(event, ev.CallbackOpened):
                # The attempt is counted when it ends.
                lasted = max(event.ended_at - event.started_at, 0)
                tally = self._tally(workflow, event.tool, now)
                tally.add("WorkTime", lasted)
                tally.ask(event.usage, lasted)
            elif metric := _waits_for(event):
                self._tally(workflow, "", now).add(metric)
            elif isinstance(event, ev.Parked | ev.SagaEnded):
                self._of_saga(workflow, event, now)

    def _of_saga(self, workflow: str, event: ev.Parked | ev.SagaEnded, now: int) -> None:
        if isinstance(event, ev.Parked):
            if not event.is_pause:
                self._tally(workflow, "", now).add("Parked", about=("code", event.code))
            return
        if event.undone is not None:
            is_all = event.status == "rolled_back"
            self._tally(workflow, "", now).add("RolledBack" if is_all else "RollbacksFailed")
        if self._counts_ends and event.status in _ENDS:
            self._tally(workflow, "", now).add(_ENDS[event.status])

    def _tally(self, workflow: str, tool: str, now: int) -> Tally:
        return self._tallies.setdefault((workflow, tool), Tally(now))

    def _step_failed(self, tally: Tally, event: ev.StepFailed) -> None:
        tally.add("Failed")
        failure = event.failure
        if not failure.attempt:
            tally.fail(failure)  # no attempt was made
        elif failure.at == event.ended_at:
            _failed_attempt(tally, event)
        # Else a person has given it up, or did not answer in time: its last attempt was counted when it failed.

    def take(self, now: int, quiet_ms: int, deployment: str) -> list[Document]:
        """Return the documents of the figures so far, and forget them.

        A tool whose steps all succeeded at once is kept until `quiet_ms` have gone by.
        `deployment` tells several of one account apart.
        """
        due = {
            key: tally
            for key, tally in self._tallies.items()
            if not tally.is_quiet or now - tally.since >= quiet_ms
        }
        for key in due:
            del self._tallies[key]
        return [
            document
            for (workflow, tool), tally in due.items()
            for document in _documents(tally, now, deployment, workflow, tool)
        ]


def _waits_for(event: ev.Event) -> str:
    """Return the metric of an event with which a wait begins; empty for any other."""
    if isinstance(event, ev.StepHeld):
        return "Held"
    return "Questions" if isinstance(event, ev.Opens) and event.work().ask is not None else ""


def _metric_of(strategy: str) -> str:
    # Loaded with the first failure: most entries have none.
    return registry.of(strategy).metric


def _attempt(tally: Tally, event: ev.StepSucceeded | ev.AttemptFailed | ev.StepFailed, time: str) -> None:
    tally.add("Attempts")
    lasted = max(event.ended_at - event.started_at, 0)
    tally.add(time, lasted)
    tally.ask(event.usage, lasted)
    if event.attempt > 1:
        tally.add("Retries")


def _succeeded(tally: Tally, event: ev.StepSucceeded) -> None:
    _attempt(tally, event, "WorkTime")
    tally.add("Succeeded")
    if event.attempt > 1:
        tally.note("AttemptsUntilSuccess", event.attempt)
    if event.cache:
        tally.add("CacheHits" if event.cache == ev.HIT else "CacheMisses")


def _failed_attempt(tally: Tally, event: ev.AttemptFailed | ev.StepFailed) -> None:
    _attempt(tally, event, "FailedTime")
    tally.fail(event.failure)
    if event.failure.code == "timeout":
        tally.add("Timeouts")


def _documents(tally: Tally, now: int, deployment: str, workflow: str, tool: str) -> Iterator[Document]:
    named = {"function": deployment, "workflow": workflow} | ({"tool": tool} if tool else {})
    for about in dict.fromkeys(about for _, about in (*tally.sums, *tally.values)):
        sums: dict[str, int | list[int]] = {
            name: sum_ for (name, of), sum_ in tally.sums.items() if of == about
        }
        sums = {**{_BESIDE[name]: 0 for name in sums if name in _BESIDE}, **sums}
        values = {name: each for (name, of), each in tally.values.items() if of == about}
        for first in range(0, max(map(len, values.values()), default=1), MOST_VALUES):
            some = {name: each[first : first + MOST_VALUES] for name, each in values.items() if each[first:]}
            yield metrics_document(now, named | dict([about] if about else []), sums | some)
            sums = {}


def metrics_document(now: int, named: Mapping[str, str], values: Mapping[str, int | list[int]]) -> Document:
    """Return one document: `values` by the names of METRICS, for each of their sets of dimensions in `named`.

    A name without a row is a count by tool.
    """
    metrics: dict[Sets, list[dict[str, str]]] = {}
    for name in values:
        unit, sets, _ = METRICS.get(name, (COUNT, _BY_TOOL, ""))
        metrics.setdefault(sets, []).append({"Name": name, "Unit": unit})
    return {
        "_aws": {
            "Timestamp": now,
            "CloudWatchMetrics": [
                {
                    "Namespace": NAMESPACE,
                    "Dimensions": [list(one) for one in sets if named.keys() >= set(one)],
                    "Metrics": its,
                }
                for sets, its in metrics.items()
            ],
        },
        **{name: _dimension(value) for name, value in named.items()},
        **values,
    }


def _dimension(value: str) -> str:
    """Return a value as CloudWatch takes it: ASCII, not empty."""
    return value.encode("ascii", "replace").decode().strip()[:LONGEST_DIMENSION] or "none"
