"""From the events of a log to figures of its attempts: retries by tool, errors by code, time lost; and their documents.

What is counted, and the form in which CloudWatch reads it out of a log line. When and where it is written is in
runtime/invocation/metrics.py.

The form is the "Embedded metric format" of the CloudWatch user guide: the line is one JSON object and nothing else; its
`_aws` has a `Timestamp` (epoch ms) and `CloudWatchMetrics`, a list of namespace, sets of dimensions (30 keys in one at
most) and metrics (100 at most); every dimension and every metric is a member of the object itself, a text or a number,
or a list of up to 100 numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from baton.core.failures.classes import code_of
from baton.core.log import events as ev
from baton.core.log.folding.model_sums import UNANSWERED
from baton.core.log.state import slot_of
from baton.core.models.usage import Usage

NAMESPACE = "Baton"
COUNT, MS = "Count", "Milliseconds"
MOST_VALUES = 100
LONGEST_DIMENSION = 250  # CloudWatch takes 1,024; a hundred or two are enough to be told apart

METRICS: Mapping[str, tuple[str, str]] = {
    "Attempts": (COUNT, "attempts that came to an end, by success or by failure"),
    "Retries": (COUNT, "of these, all that were not the first of their step; `Retries / Attempts` is the retry rate"),
    "Succeeded": (COUNT, "steps that succeeded"),
    "Failed": (COUNT, "steps that failed for good"),
    "Timeouts": (COUNT, "attempts that had no answer within their `timeout`"),
    "AttemptsUntilSuccess": (COUNT, "of a step that succeeded, but not at once: how many attempts it took"),
    "WorkTime": (MS, "time of attempts that succeeded"),
    "FailedTime": (MS, "time of attempts that failed"),
    "PauseTime": (MS, "pauses before retries; `FailedTime + PauseTime` is what retrying took"),
    "Replans": (COUNT, "steps that were tried another way"),
    "Questions": (COUNT, "people who were asked"),
    "Escalations": (COUNT, "failures of steps that became incidents"),
    "Parked": (COUNT, "sagas that were parked: nothing more begins until a person lets them go on, or their time comes"),
    "RolledBack": (COUNT, "sagas that have undone what they had done"),
    "RollbacksFailed": (COUNT, "sagas of which something could not be undone"),
    "Held": (COUNT, "times a step was held back by a circuit breaker, without an attempt"),
    "BreakerOpened": (COUNT, "times a circuit breaker opened"),
    "SagasCompleted": (COUNT, "sagas that completed; with an error budget only"),
    "SagasFailed": (COUNT, "sagas that failed or were rolled back; with an error budget only"),
    "TicksSkipped": (COUNT, "ticks of schedules that started nothing, because a saga of the schedule was still at work (`overlap: skip`)"),
    "TicksMissed": (COUNT, "ticks of schedules that were too late to be started: more of them than `catch_up` allows, after an outage"),
    "TicksRefused": (COUNT, "ticks of schedules whose start was refused, because of a limit or for what is wrong with it"),
    "EventsUnmatched": (COUNT, "events from outside that no rule was for"),
    "EventsUnreached": (COUNT, "rules for a signal whose event reached no saga, because none has its correlation key"),
    "EventsRefused": (COUNT, "rules that could not do what they say for an event, now or at all"),
    "LoopBlocked": (COUNT, "times an `async` tool held the event loop for longer than `LoopBlockedMs`"),
    "DeadMessages": (COUNT, "messages that no function could handle, as the reconciler finds them"),
    "DeadLetters": (COUNT, "dead letters that are pending, 1,000 at most; there are no figures while there are none"),
    "DeadLetterAge": (MS, "for how long the oldest of them has been pending"),
    "InputTokens": (COUNT, "tokens that a model has read, those that its provider still had inside"),
    "OutputTokens": (COUNT, "tokens that a model has written, reasoning inside"),
    "ModelTime": (MS, "time of an attempt in which a model has answered, whether the answer was of use or not"),
    "Errors": (COUNT, "failures of attempts, and of steps without one"),
}  # fmt: skip
"""Every metric: its unit, and what it counts. `Errors` and `Parked` are by code, `LoopBlocked` by tool, `BreakerOpened` by breaker, those of
models by model, `Held` and those of schedules by workflow, those of events by deployment alone, the others by tool and by workflow."""

_QUIET = frozenset({"Attempts", "Succeeded", "WorkTime", "SagasCompleted"})

_ENDS = {
    "completed": "SagasCompleted",
    **dict.fromkeys(("failed", "rolled_back", "rollback_failed"), "SagasFailed"),
}

Document = dict[str, Any]


class Asked:
    """What a model was asked: tokens, and how long each attempt has taken."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}
        self.times: list[int] = []


class Tally:
    """What one tool did in one workflow since `since` (epoch ms)."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.sums: dict[str, int] = {}
        self.until_success: list[int] = []
        self.errors: dict[str, int] = {}
        self.parked: dict[str, int] = {}
        self.models: dict[str, Asked] = {}

    @property
    def is_quiet(self) -> bool:
        """Whether everything succeeded at its first attempt."""
        return self.sums.keys() <= _QUIET and not self.errors and not self.parked

    def add(self, name: str, value: int = 1) -> None:
        self.sums[name] = self.sums.get(name, 0) + value

    def fail(self, failure: ev.Failure) -> None:
        code = code_of(failure.code)
        self.errors[code] = self.errors.get(code, 0) + 1

    def ask(self, usage: Sequence[Usage], lasted: int) -> None:
        usage = [one for one in usage if one.model != UNANSWERED]
        for one in usage:
            asked = self.models.setdefault(one.model, Asked())
            asked.sums["InputTokens"] = asked.sums.get("InputTokens", 0) + one.input
            asked.sums["OutputTokens"] = asked.sums.get("OutputTokens", 0) + one.output
        if usage:
            self.models[usage[-1].model].times.append(lasted)


class Figures:
    """Adds up the figures of entries until they are taken."""

    def __init__(self, *, counts_ends: bool = False) -> None:
        self._counts_ends = counts_ends
        self._tallies: dict[tuple[str, str], Tally] = {}

    def heard(self, workflow: str, events: Iterable[ev.Event], now: int) -> None:
        """The events of an entry that was appended at `now`, to the log of a saga of this workflow."""
        tools: dict[str, str] = {}
        for event in events:
            if isinstance(event, ev.StepSucceeded):
                tally = self._tally(workflow, event.tool, now)
                _attempt(tally, event, "WorkTime")
                tally.add("Succeeded")
                if event.attempt > 1:
                    tally.until_success.append(event.attempt)
            elif isinstance(event, ev.AttemptFailed):
                tools[slot_of(event.node, event.iteration, event.item)] = event.tool
                _failed_attempt(self._tally(workflow, event.tool, now), event)
            elif isinstance(event, ev.StepFailed):
                self._step_failed(self._tally(workflow, event.tool, now), event)
            elif isinstance(event, ev.StrategyChosen):
                # One that follows an unanswered question does not say which tool it is about.
                tool = tools.get(slot_of(event.node, event.iteration, event.item), "")
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
            parked = self._tally(workflow, "", now).parked
            parked[event.code] = parked.get(event.code, 0) + 1
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
        """The documents of the figures so far, which are then forgotten.

        A tool whose steps all succeeded at once is kept until `quiet_ms` have gone by. `deployment` tells several of
        one account apart.
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
    """The metric of an event with which a wait begins; empty for any other."""
    if isinstance(event, ev.StepHeld):
        return "Held"
    return "Questions" if isinstance(event, ev.Opens) and event.work().ask is not None else ""


def _metric_of(strategy: str) -> str:
    # Loaded with the first failure: most entries have none.
    from baton.core.failures.strategies.registry import of

    return of(strategy).metric


def _attempt(tally: Tally, event: ev.StepSucceeded | ev.AttemptFailed | ev.StepFailed, time: str) -> None:
    tally.add("Attempts")
    lasted = max(event.ended_at - event.started_at, 0)
    tally.add(time, lasted)
    tally.ask(event.usage, lasted)
    if event.attempt > 1:
        tally.add("Retries")


def _failed_attempt(tally: Tally, event: ev.AttemptFailed | ev.StepFailed) -> None:
    _attempt(tally, event, "FailedTime")
    tally.fail(event.failure)
    if event.failure.code == "timeout":
        tally.add("Timeouts")


def _documents(tally: Tally, now: int, deployment: str, workflow: str, tool: str) -> Iterator[Document]:
    named = {"function": deployment, "workflow": workflow} | ({"tool": tool} if tool else {})
    sets = [["function", "workflow"], *([["function", "tool"]] if tool else [])]
    if ends := {name: tally.sums.pop(name) for name in _ENDS.values() if name in tally.sums}:
        # A rate needs both of its figures: what is missing is no zero to CloudWatch.
        values: dict[str, int | list[int]] = {**dict.fromkeys(_ENDS.values(), 0), **ends}
        yield document(
            now,
            {"function": deployment, "workflow": workflow},
            [["function"], ["function", "workflow"]],
            values,
        )
    # What is missing is no zero to CloudWatch: a rate needs both of its figures.
    sums: dict[str, int | list[int]] = (
        {"Retries": 0, **tally.sums} if "Attempts" in tally.sums else {**tally.sums}
    )
    yield from _with_values(now, named, sets, sums, "AttemptsUntilSuccess", tally.until_success)
    for model, asked in tally.models.items():
        about = {"function": deployment, "model": model}
        yield from _with_values(now, about, [["function", "model"]], {**asked.sums}, "ModelTime", asked.times)
    for code, errors in tally.errors.items():
        about = {"function": deployment, "code": code} | ({"tool": tool} if tool else {})
        by = [["function", "code"], *([["function", "tool", "code"]] if tool else [])]
        yield document(now, about, by, {"Errors": errors})
    for code, parked in tally.parked.items():
        about = {"function": deployment, "workflow": workflow, "code": code}
        by = [["function", "code"], ["function", "workflow", "code"]]
        yield document(now, about, by, {"Parked": parked})


def _with_values(
    now: int,
    named: Mapping[str, str],
    sets: Sequence[Sequence[str]],
    sums: dict[str, int | list[int]],
    name: str,
    values: Sequence[int],
) -> Iterator[Document]:
    """Documents of the sums, and of all values of one metric: of these each has only so many."""
    if values:
        sums[name] = [*values[:MOST_VALUES]]
    if sums:
        yield document(now, named, sets, sums)
    for first in range(MOST_VALUES, len(values), MOST_VALUES):
        yield document(now, named, sets, {name: [*values[first : first + MOST_VALUES]]})


def document(
    now: int,
    named: Mapping[str, str],
    sets: Sequence[Sequence[str]],
    values: Mapping[str, int | list[int]],
) -> Document:
    """One document: `values` by the names of METRICS, once for each set of the dimensions in `named`. One that has no row is a count."""
    metrics = [{"Name": name, "Unit": METRICS.get(name, (COUNT,))[0]} for name in values]
    said = {"Namespace": NAMESPACE, "Dimensions": [list(one) for one in sets], "Metrics": metrics}
    return {
        "_aws": {"Timestamp": now, "CloudWatchMetrics": [said]},
        **{name: _dimension(value) for name, value in named.items()},
        **values,
    }


def _dimension(value: str) -> str:
    """CloudWatch takes ASCII, not empty."""
    return value.encode("ascii", "replace").decode().strip()[:LONGEST_DIMENSION] or "none"
