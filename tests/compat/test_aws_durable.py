"""Handlers of AWS's durable functions on the adapter, in virtual time. tests/conformance runs AWS's own suite."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from baton.compat.aws_durable import (
    BatchCompletionError,
    BatchItemStatus,
    BatchResult,
    CallbackConfig,
    CallbackExternalError,
    CallbackSubmitterError,
    CallbackTimeoutError,
    ChildConfig,
    ChildContextError,
    CompletionConfig,
    CompletionOutcome,
    CompletionReason,
    DurableContext,
    Duration,
    ExecutionError,
    ExtendedTypeSerDes,
    InvokeConfig,
    InvokeError,
    JitterStrategy,
    JsonSerDes,
    MapConfig,
    ParallelBranch,
    ParallelConfig,
    PassThroughSerDes,
    RetryPresets,
    RetryStrategyConfig,
    SerDes,
    SerDesContext,
    SerDesError,
    StepConfig,
    StepContext,
    StepError,
    StepSemantics,
    ValidationError,
    WaitForCallbackConfig,
    WaitForConditionConfig,
    WaitForConditionDecision,
    WaitForConditionError,
    WaitStrategyConfig,
    WithRetryConfig,
    complete_batch,
    continue_batch,
    create_retry_strategy,
    create_wait_strategy,
    durable_execution,
    durable_parallel_branch,
    durable_step,
    durable_wait_for_callback,
    durable_with_child_context,
    strands,
    with_retry,
)
from baton.compat.aws_durable import context as context_module
from baton.compat.aws_durable.context import workflow_of
from baton.compat.aws_durable.strands import BODIES
from baton.testing import Elsewhere, Result, run
from baton.tools.define import Registry, ToolError
from baton.tools.functions.notes import function_notes

NONE = StepConfig(RetryPresets.none())
SECOND = Duration.from_seconds(1)
QUICK = create_retry_strategy(
    RetryStrategyConfig(max_attempts=3, initial_delay=SECOND, jitter_strategy=JitterStrategy.NONE)
)


def outcome(
    handler: Callable[[Any, DurableContext], Any], event: Any = None, *others: Any, **options: Any
) -> Result:
    """Run a handler, whose targets are `others`."""
    registry = Registry()
    made = durable_execution(name="it", registry=registry)(handler)
    for other in others:
        durable_execution(registry=registry)(other)
    names = [one.__name__.replace("_", "-") for one in others]
    workflows = [registry[name].function for name in names]
    return run(made, {"event": event}, tools=registry, workflows=workflows, **options)


def result_of(handler: Callable[[DurableContext], Any], *others: Any, **options: Any) -> Any:
    """Return the output of a handler that completes."""
    found = outcome(lambda event, context: handler(context), None, *others, **options)
    assert found.status == "completed", found
    return found.output


def raising(error: Exception) -> Callable[..., Any]:
    def fails(*_: Any) -> Any:
        raise error

    return fails


class Upper(SerDes[str]):
    def serialize(self, value: str, serdes_context: SerDesContext) -> str:
        return value.upper()

    def deserialize(self, data: str, serdes_context: SerDesContext) -> str:
        return data


# ---- steps


def test_a_plain_handler_runs_its_operations_in_order() -> None:
    @durable_step
    def greet(context: StepContext, name: str, *, mark: str) -> str:
        return f"hello {name}{mark}"

    def handler(event: Any, context: DurableContext) -> Any:
        said = context.step(greet(event, mark="!"))
        context.wait(Duration.from_days(30), name="a month")
        return [said, context.step(lambda _: None), context.step(lambda _: 3, name="2nd")]

    found = outcome(handler, "ann")
    assert found.output == ["hello ann!", None, 3]
    assert found.way == ["greet", "a_month", "step", "_2nd"]
    assert found.took_s == 30 * 86_400


@pytest.mark.parametrize(
    ("semantics", "kill", "attempts", "output"),
    [
        (StepSemantics.AT_LEAST_ONCE_PER_RETRY, "before", [1], 1),
        (StepSemantics.AT_LEAST_ONCE_PER_RETRY, "after", [1, 1], 1),
        (StepSemantics.AT_MOST_ONCE_PER_RETRY, "before", [2], 2),
        (StepSemantics.AT_MOST_ONCE_PER_RETRY, "after", [1, 2], 2),
    ],
)
def test_a_step_whose_worker_dies_runs_as_its_semantics_say(
    semantics: StepSemantics, kill: str, attempts: list[int], output: int
) -> None:
    began = []

    def charge(context: StepContext) -> int:
        began.append(context.attempt)
        return context.attempt

    config = StepConfig(QUICK, semantics)
    assert result_of(lambda context: context.step(charge, config=config), kills={"charge": kill}) == output
    assert began == attempts


def test_a_step_that_may_run_once_is_not_tried_again_by_a_strategy_that_gives_up() -> None:
    began = []
    config = StepConfig(RetryPresets.none(), StepSemantics.AT_MOST_ONCE_PER_RETRY)
    found = outcome(
        lambda event, context: context.step(lambda _: began.append(1), "charge", config),
        kills={"charge": "after"},
    )
    assert (found.status, began) == ("failed", [1])
    assert found.error == "execution_failed: StepInterruptedError: `charge` was interrupted"


@pytest.mark.parametrize("semantics", StepSemantics)
def test_a_step_that_has_not_begun_is_asked_for_again(
    semantics: StepSemantics, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(dict[Any, Any]):
        """The closures of a process that has not run the handler, at first."""

        is_first = True

        def pop(self, key: Any, default: Any = None) -> Any:
            found, is_first = super().pop(key, default), self.is_first
            self.is_first = False
            return None if is_first else found

    closures = Elsewhere()
    monkeypatch.setattr(strands, "BODIES", closures)
    monkeypatch.setattr(context_module, "BODIES", closures)
    config = StepConfig(RetryPresets.none(), semantics)
    found = outcome(lambda event, context: context.step(lambda step: step.attempt, "charge", config))
    assert (found.output, found.way) == (1, ["charge", "charge#2"])


def test_a_strategy_gets_the_exception_itself_and_says_when_to_try_again() -> None:
    class BusyError(Exception):
        pass

    def busy(context: StepContext) -> int:
        if context.attempt < 3:
            raise BusyError(f"attempt {context.attempt}")
        return context.attempt

    config = StepConfig(
        create_retry_strategy(
            RetryStrategyConfig(
                max_attempts=5,
                initial_delay=Duration.from_minutes(1),
                jitter_strategy=JitterStrategy.NONE,
                retryable_error_types=[BusyError],
            )
        )
    )
    found = outcome(lambda event, context: context.step(busy, config=config))
    assert (found.output, found.took_s) == (3, 60 + 120)
    assert found.steps["busy"].output == {"retry_in": 60, "error": "BusyError: attempt 1"}


@pytest.mark.parametrize(
    ("config", "attempts"),
    [
        (NONE, 1),
        (StepConfig(QUICK), 3),
        (StepConfig(create_retry_strategy(RetryStrategyConfig(retryable_errors=["else"]))), 1),
        (StepConfig(raising(RuntimeError("a broken strategy"))), 1),
    ],
)
def test_a_step_that_has_failed_for_good_raises_its_error(config: StepConfig, attempts: int) -> None:
    def handler(context: DurableContext) -> Any:
        with pytest.raises(StepError) as raised:
            context.step(raising(LookupError("no such: order")), "find", config)
        return [raised.value.error_type, raised.value.message]

    found = outcome(lambda event, context: handler(context))
    is_broken = config.retry_strategy not in (NONE.retry_strategy, QUICK) and attempts == 1
    assert found.output in (["LookupError", "no such: order"], ["RuntimeError", "a broken strategy"]), (
        is_broken
    )
    assert sum(name.partition("#")[0] == "find" for name in found.way) == attempts


def test_jitter_is_drawn_once() -> None:
    config = StepConfig(create_retry_strategy(RetryStrategyConfig(initial_delay=Duration.from_hours(1))))

    def flaky(context: StepContext) -> int:
        return context.attempt if context.attempt > 1 else raising(OSError("down"))()

    found = outcome(lambda event, context: context.step(flaky, config=config))
    assert found.output == 2
    assert 1 <= found.took_s < 300
    again = outcome(lambda event, context: context.step(flaky, config=config), kills={"flaky#2": "before"})
    assert again.output == 2


def test_an_exception_that_a_handler_does_not_catch_fails_the_saga() -> None:
    found = outcome(raising(KeyError("order")))
    assert (found.status, found.error) == ("failed", "execution_failed: KeyError: 'order'")
    found = outcome(lambda event, context: context.step(raising(OSError("down")), config=NONE))
    assert (found.status, found.error) == ("failed", "execution_failed: OSError: down")


def test_a_block_of_operations_is_tried_again() -> None:
    def block(context: DurableContext, attempt: int) -> int:
        return context.step(lambda _: attempt if attempt > 1 else raising(OSError("down"))(), config=NONE)

    config = WithRetryConfig[int](QUICK)
    found = outcome(lambda event, context: with_retry(context, block, config, "block"))
    assert (found.output, found.took_s) == (2, 1)
    bare = WithRetryConfig[int](RetryPresets.none(), wrap_with_run_in_child_context=False)
    assert outcome(lambda event, context: with_retry(context, block, bare)).status == "failed"


# ---- values


def test_values_of_python_come_back_as_they_were() -> None:
    value = {
        "at": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        "price": Decimal("1.10"),
        "pair": (1, b"two"),
        "list": [None, True, 1.5],
    }

    def handler(context: DurableContext) -> bool:
        return context.step(lambda _: value) == value

    assert result_of(handler) is True
    extended = ExtendedTypeSerDes()
    assert extended.deserialize(extended.serialize(value)) == value


def test_a_serdes_of_ones_own_makes_the_value() -> None:
    def handler(context: DurableContext) -> Any:
        step = context.step(lambda _: "one", config=StepConfig(serdes=Upper()))
        child = context.run_in_child_context(lambda _: "two", config=ChildConfig(serdes=Upper()))
        items = context.map(["three"], lambda *of: of[1], config=MapConfig(item_serdes=Upper()))
        text = context.step(lambda _: "four", config=StepConfig(serdes=PassThroughSerDes()))
        return [step, child, *items.get_results(), text]

    assert result_of(handler) == ["ONE", "TWO", "THREE", "four"]


def test_a_value_without_a_form_fails_the_step_once() -> None:
    def handler(context: DurableContext) -> Any:
        with pytest.raises(StepError) as raised:
            context.step(lambda _: object())
        with pytest.raises(SerDesError):
            context.run_in_child_context(lambda _: object(), config=ChildConfig(serdes=JsonSerDes()))
        return raised.value.error_type

    assert result_of(handler) == "SerDesError"


# ---- waits


def test_a_condition_is_polled_until_it_holds() -> None:
    strategy = create_wait_strategy(
        WaitStrategyConfig[int](
            lambda state: state < 3, initial_delay=SECOND, backoff_rate=2, jitter_strategy=JitterStrategy.NONE
        )
    )
    config = WaitForConditionConfig(strategy, initial_state=0)
    found = outcome(
        lambda event, context: context.wait_for_condition(lambda state, _: state + 1, config, "paid")
    )
    assert (found.output, found.took_s) == (3, 1 + 2)
    assert found.way == ["paid", "paid_wait", "paid#2", "paid_wait#2", "paid#3"]


def test_a_condition_that_cannot_be_checked_raises() -> None:
    stop = WaitForConditionConfig(lambda *_: WaitForConditionDecision.stop_polling(), 0)
    never = create_wait_strategy(WaitStrategyConfig[int](lambda _: True, max_attempts=2))

    def handler(context: DurableContext) -> Any:
        with pytest.raises(WaitForConditionError, match="down") as raised:
            context.wait_for_condition(raising(OSError("down")), stop)
        with pytest.raises(WaitForConditionError, match="after 2 attempts"):
            context.wait_for_condition(lambda state, _: state, WaitForConditionConfig(never, 0))
        with pytest.raises(ValidationError):
            context.wait(Duration())
        return raised.value.error_type

    assert result_of(handler) == "OSError"


def test_a_callback_brings_the_text_of_the_outside() -> None:
    def handler(context: DurableContext) -> Any:
        asked = context.create_callback("approval", CallbackConfig(SECOND, heartbeat_timeout=SECOND))
        read = context.create_callback("parsed", CallbackConfig(serdes=JsonSerDes()))
        context.create_callback("left")
        return [asked.result(), read.result(), len(asked.callback_id) > 20]

    callbacks = {"approval": "yes", "parsed": {"pages": 4}}
    assert result_of(handler, callbacks=callbacks) == ["yes", {"pages": 4}, True]


def test_a_callback_is_handed_over_by_a_step() -> None:
    tokens = []

    @durable_wait_for_callback
    def send(callback_id: str, context: Any, to: str) -> None:
        context.logger.info("sent")
        tokens.append((to, callback_id))

    found = result_of(
        lambda context: context.wait_for_callback(send("ann")), callbacks={"send": Elsewhere(output=5)}
    )
    assert found == "5"
    assert tokens[0][0] == "ann"


@pytest.mark.parametrize(
    ("callback", "submitter", "kind"),
    [
        (Elsewhere(code="rejected", message="no"), None, CallbackExternalError),
        (Elsewhere(after="2m", silent=True), None, CallbackTimeoutError),
        (Elsewhere(), OSError("down"), CallbackSubmitterError),
    ],
)
def test_a_callback_that_fails_says_how(
    callback: Elsewhere, submitter: Exception | None, kind: type[Exception]
) -> None:
    config = WaitForCallbackConfig(
        Duration.from_minutes(1), Duration.from_seconds(5), retry_strategy=RetryPresets.none()
    )

    def handler(context: DurableContext) -> None:
        with pytest.raises(kind):
            context.wait_for_callback(
                raising(submitter) if submitter else lambda *_: None, "approval", config
            )

    result_of(handler, callbacks={"approval": callback})


# ---- contexts, branches, other workflows


def test_a_child_context_wraps_what_it_raises() -> None:
    @durable_with_child_context
    def fails(context: DurableContext, order: str) -> None:
        context.step(lambda _: 1)
        raise LookupError(order)

    def handler(context: DurableContext) -> Any:
        with pytest.raises(ChildContextError) as raised:
            context.run_in_child_context(fails("o1"))
        return [raised.value.error_type, raised.value.message]

    assert result_of(handler) == ["LookupError", "o1"]


def test_branches_run_side_by_side() -> None:
    @durable_parallel_branch(name="slow")
    def slow(context: DurableContext, days: int) -> str:
        context.wait(Duration.from_days(days))
        return context.step(lambda _: "slow", "end")

    def handler(event: Any, context: DurableContext) -> Any:
        quick = ParallelBranch(lambda inner: inner.step(lambda _: "quick", "end"))
        return context.parallel([slow(3), quick], "both").get_results()

    found = outcome(handler)
    assert (found.output, found.took_s) == (["slow", "quick"], 3 * 86_400)
    assert found.way == ["both[1]/end", "slow[1]/wait", "slow[1]/end"]


def one_of(fails: set[int]) -> Callable[..., Any]:
    def branch(context: DurableContext, item: int, index: int, items: Any) -> int:
        context.wait(Duration.from_hours(1 + index))
        if item in fails:
            raise LookupError(f"no {item}")
        return item

    return branch


S, F, B = "SUCCEEDED", "FAILED", "STARTED"


@pytest.mark.parametrize(
    ("completion", "concurrency", "fails", "states", "reason", "hours"),
    [
        (CompletionConfig(), None, {1}, [S, F, B], "FAILURE_TOLERANCE_EXCEEDED", 2),
        (CompletionConfig(), None, set(), [S, S, S], "ALL_COMPLETED", 3),
        (CompletionConfig.first_successful(), None, {0}, [F, S, B], "MIN_SUCCESSFUL_REACHED", 2),
        (CompletionConfig(min_successful=1), 1, set(), [S], "MIN_SUCCESSFUL_REACHED", 1),
        (CompletionConfig.all_completed(), 2, {0, 1, 2}, [F, F, F], "ALL_COMPLETED", 4),
        (CompletionConfig.all_successful(), 1, {0}, [F], "FAILURE_TOLERANCE_EXCEEDED", 1),
        (CompletionConfig(tolerated_failure_percentage=40), None, {0}, [F, S, S], "ALL_COMPLETED", 3),
        (
            CompletionConfig(
                should_complete=lambda seen: (
                    complete_batch(CompletionOutcome.FAILED)
                    if seen.items[1].status is BatchItemStatus.SUCCEEDED
                    else continue_batch()
                )
            ),
            None,
            {0},
            [F, S, B],
            "CUSTOM_COMPLETION_FAILED",
            2,
        ),
        (
            CompletionConfig(should_complete=lambda seen: complete_batch()),
            None,
            set(),
            [],
            "CUSTOM_COMPLETION_SUCCEEDED",
            0,
        ),
    ],
)
def test_a_batch_ends_as_its_conditions_say(
    completion: CompletionConfig,
    concurrency: int | None,
    fails: set[int],
    states: list[str],
    reason: str,
    hours: int,
) -> None:
    config = MapConfig[int](concurrency, completion, item_namer=lambda item, index: f"item-{item}")

    def handler(event: Any, context: DurableContext) -> Any:
        found = context.map([0, 1, 2], one_of(fails), "each", config)
        assert (found.started_count, found.total_count) == (states.count(B), len(states))
        if found.status is BatchItemStatus.FAILED:
            with pytest.raises((ChildContextError, BatchCompletionError)):
                found.throw_if_error()
        assert BatchResult.from_dict(found.to_dict()) == found
        return [[one.status.value for one in found.all], found.completion_reason.value]

    found = outcome(handler)
    assert (found.output, found.took_s) == ([states, reason], hours * 3_600)


def test_a_batch_that_is_ended_as_failed_raises() -> None:
    batch = BatchResult[int]([], CompletionReason.CUSTOM_COMPLETION_FAILED)
    assert batch.status is BatchItemStatus.FAILED
    with pytest.raises(BatchCompletionError):
        batch.throw_if_error()


def test_an_invoked_workflow_is_a_child_saga() -> None:
    def target(event: Any, context: DurableContext) -> Any:
        context.wait(Duration.from_hours(1))
        return raising(LookupError("none"))() if event is None else event

    def handler(context: DurableContext) -> Any:
        arn = "arn:aws:lambda:eu-central-1:123456789012:function:Target:live"
        upper = InvokeConfig[Any, Any](JsonSerDes(), Upper())
        found = [context.invoke(arn, {"order": 1}, "child"), context.invoke("target", "a", config=upper)]
        with pytest.raises(InvokeError):
            context.invoke("target", None)
        return found

    assert result_of(handler, target) == [{"order": 1}, '"a"']
    assert workflow_of("ShipOrder_v2") == "ship-order-v2"


# ---- what stays outside


def test_options_that_would_mean_something_else_here_are_refused() -> None:
    with pytest.raises(ValidationError, match="tenant"):
        InvokeConfig[Any, Any](tenant_id="acme")
    with pytest.raises(ToolError, match="plugins"):
        durable_execution(plugins=[object()], registry=Registry())(lambda event, context: None)
    for wrong in (
        lambda: Duration(-1),
        lambda: CompletionConfig(min_successful=0),
        lambda: CompletionConfig(tolerated_failure_count=-1),
        lambda: CompletionConfig(tolerated_failure_percentage=101),
        lambda: CompletionConfig(min_successful=1, should_complete=lambda _: complete_batch()),
        lambda: CompletionConfig(min_successful=3).check_total(2),
        lambda: ParallelConfig(max_concurrency=0),
        lambda: StepConfig(sub_type="a b"),
    ):
        with pytest.raises(ValidationError):
            wrong()


def test_an_operation_is_asked_for_by_the_handlers_own_thread() -> None:
    def handler(context: DurableContext) -> Any:
        with ThreadPoolExecutor(1) as pool, pytest.raises(ExecutionError):
            pool.submit(context.step, lambda _: 1).result()

    result_of(handler)


def test_a_replay_takes_the_same_way_and_does_not_log_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "baton.durable")

    def handler(context: DurableContext) -> Any:
        context.logger.info("begins")
        one = context.step(lambda _: 1, "one")
        context.logger.info("goes on")
        several = context.map([1, 2, 3], lambda inner, item, *_: inner.step(lambda _: item + one, "add"))
        context.wait(Duration.from_days(1))
        return [*several.get_results(), context.step(lambda _: 5, "last")]

    found = result_of(handler, kills={"add": ["after", "before"], "last": "before"})
    assert found == [2, 3, 4, 5]
    assert [record.message for record in caplog.records if record.name == "baton.durable"] == [
        "begins",
        "goes on",
    ]


def test_nothing_is_left_of_a_handler() -> None:
    ends = []

    def handler(event: Any, context: DurableContext) -> Any:
        try:
            context.wait(Duration.from_days(2))
        finally:
            ends.append(1)
            context.step(lambda _: ends.append(2))

    def both(event: Any, context: DurableContext) -> Any:
        config = ParallelConfig(completion_config=CompletionConfig.first_successful())
        context.parallel([lambda inner: handler(event, inner), lambda _: 1], config=config)

    assert outcome(both).status == "completed"
    assert ends == [1]
    assert not BODIES
    assert not [one for one in threading.enumerate() if one.name == "durable-handler"]


def test_code_of_steps_in_a_handler_is_not_noted() -> None:
    def handler(event: Any, context: DurableContext) -> Any:
        return context.step(lambda _: datetime.now(UTC))

    registry = Registry()
    durable_execution(name="it", registry=registry)(handler)
    assert function_notes(registry["it"], registry) == []
