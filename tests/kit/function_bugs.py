"""Planted bugs of workflow functions: how they are asked, and run again. Where each is searched for is in planted.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.compat.aws_durable import context as durable
from baton.core.decide import outcomes
from baton.core.log.folding import fold
from baton.ports.functions import FunctionStep
from baton.runtime.worker import functions
from baton.runtime.worker.functions import FunctionRunner
from baton.tools.functions import context
from baton.tools.functions.context import WorkflowContext
from baton.tools.functions.loop import TaskPath
from tests.kit.bugs import replaced

_Live = vars(functions)["_Live"]


@contextmanager
def results_are_heard_again_in_another_order() -> Iterator[None]:
    """Function row: a function that is run again gets its results in the order of their names."""

    def with_operations(work: Any, event: Any, items: Any) -> Any:
        after = real(work, event, items)
        return replace(after, tail=tuple(sorted(after.tail, key=lambda one: one.item)))

    real = vars(fold)["with_operations"]
    with replaced(fold, "with_operations", with_operations):
        yield


@contextmanager
def what_was_asked_for_is_asked_for_again() -> Iterator[None]:
    """Function row: a function that is run again asks for all again of which it has heard."""

    def took(self: Any, step: Any, *more: Any) -> None:
        real(self, step, *more)
        steps.setdefault(id(self), []).append(step)

    async def again(self: FunctionRunner, run: Any, call: Any) -> Any:
        live = await real_again(self, run, call)
        asked = [
            one for step in steps.pop(id(live), ()) for one in step.asked if one.item not in call.work.asked
        ]
        live.steps = [FunctionStep(asked=tuple(asked))]
        return live

    steps: dict[int, list[Any]] = {}
    real, real_again = _Live._took, FunctionRunner._again
    with replaced(_Live, "_took", took), replaced(FunctionRunner, "_again", again):
        yield


@contextmanager
def other_code_is_as_good() -> Iterator[None]:
    """Function row: a result is given to whatever the function waits for, under whichever name."""

    def deliver(self: Any, heard: Any, output: Any) -> None:
        if heard.item not in self.asked and self.asked:
            item, digest = next(iter(self.asked.items()))
            heard = replace(heard, item=item, digest=digest)
        real(self, replace(heard, digest=self.asked.get(heard.item, heard.digest)), output)

    real = _Live.deliver
    with replaced(_Live, "deliver", deliver):
        yield


@contextmanager
def the_last_result_is_not_kept() -> Iterator[None]:
    """Function row: of the results that a function hears together, the log's state has all but the last."""

    def with_operations(work: Any, event: Any, items: Any) -> Any:
        after = real(work, event, items)
        return replace(after, tail=after.tail[:-1]) if event.heard else after

    real = vars(fold)["with_operations"]
    with replaced(fold, "with_operations", with_operations):
        yield


@contextmanager
def what_is_left_goes_on() -> Iterator[None]:
    """Function row: an operation that a function no longer waits for is not stopped."""

    def progress(self: Any, *given: Any, **more: Any) -> Any:
        return replace(real(self, *given, **more), left=())

    real = _Live.progress
    with replaced(_Live, "progress", progress):
        yield


@contextmanager
def an_answer_goes_to_the_newest_update() -> Iterator[None]:
    """Function row: a function answers the update that it has heard last, whichever it answers."""

    def deliver(self: Any, heard: Any, output: Any) -> None:
        newest.update({"key": heard.by} if heard.by else {})
        real(self, heard, output)

    newest: dict[str, str] = {}
    real, reply = _Live.deliver, vars(context)["_reply"]
    with (
        replaced(_Live, "deliver", deliver),
        replaced(context, "_reply", lambda signal, key, said: reply(signal, newest.get("key", key), said)),
    ):
        yield


@contextmanager
def a_second_result_of_an_entry_is_dropped() -> Iterator[None]:
    """Function row: of results that come together, a function gets the first, and the others are taken for heard."""

    def deliver(self: Any, heard: Any, output: Any) -> None:
        is_first = not self.heard or self.heard[-1].at != heard.at
        if is_first or heard.item in self.left:
            real(self, heard, output)
        else:
            self.heard.append(heard)
            self.steps.append(replace(self.steps[-1], asked=(), left=()))

    real = _Live.deliver
    with replaced(_Live, "deliver", deliver):
        yield


@contextmanager
def what_a_function_has_done_is_not_undone() -> Iterator[None]:
    """Function row: the effects of its steps are not among those of the saga."""

    def enlisted(program: Any, state: Any, node: Any, succeeded: Any, outcome: Any) -> Any:
        return succeeded if succeeded.item else real(program, state, node, succeeded, outcome)

    real = vars(outcomes)["_enlisted"]
    with replaced(outcomes, "_enlisted", enlisted):
        yield


@contextmanager
def an_agent_has_another_name_each_time_that_it_is_asked() -> Iterator[None]:
    """Function row: how often an agent was asked is counted in the memory of a process."""

    def agent(self: WorkflowContext, agent: Any, prompt: Any, **more: Any) -> Any:
        asked.append(agent)
        return real(self, agent, prompt, **{"name": f"{agent.name}_{len(asked)}", **more})

    asked: list[Any] = []
    real = WorkflowContext.agent
    with replaced(WorkflowContext, "agent", agent):
        yield


@contextmanager
def operations_of_tasks_are_named_as_if_there_were_no_tasks() -> Iterator[None]:
    """Function row: an operation has the name of its place in the order in which all were asked for."""

    def task(self: TaskPath, name: str) -> TaskPath:
        return self

    with replaced(TaskPath, "task", task):
        yield


@contextmanager
def the_code_of_a_step_is_taken_for_there() -> Iterator[None]:
    """Durable row: a process that has not run the handler has nothing to do for its step, and says that it is done."""
    with replaced(durable, "MISSING", None):
        yield
