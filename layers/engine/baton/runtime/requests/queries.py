"""A viewer of a saga: what its models are writing just now, and word to its worker that a viewer is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from baton.core.decide.context import FetchedValues, LackingError
from baton.core.decide.spending import day_of
from baton.core.decide.spending import day_text as shown_day
from baton.core.effects.toolspec import tools_for
from baton.core.expressions import iso
from baton.core.graph.graph import HANDLER, WORKFLOW_NAME, starter_of
from baton.core.log.codec import SCHEME, decode_entry, value_of
from baton.core.log.events import Entry, Value
from baton.core.log.folding.forks import lineage_to
from baton.core.log.labels import read_labels
from baton.core.log.slots import slot_of
from baton.core.log.state import LISTS, State, status_of
from baton.core.on_demand import OnDemand
from baton.core.read.answers import STEP, LargeValue, UnreadableEntries, Version, View
from baton.core.read.costs import (
    BillingSettings,
    Budget,
    Cost,
    CostPage,
    ErrorBudgetPage,
    ErrorBudgets,
    budget_view,
)
from baton.core.read.day_costs import AWS, BY, MODELS
from baton.core.read.definition_views import Tools, graph_view
from baton.core.read.explain import Explanation, StepPage, Way, child_of, explain, has_page, way
from baton.core.read.step_runs import MOST_INPUTS, StepRun, open_run, open_slots, page_of_runs, run_view
from baton.core.read.story import AttemptEnd, Story, wants_nothing
from baton.core.read.views import Saga, entry_view, handler_view, saga_view, tool_view, view_without_graph
from baton.errors import CorruptLog, MissingGraph, NotFound, TooLarge, UserError
from baton.ports import Clock, Definition, Head, Listed, Log, SagaRef, Sums
from baton.ports.log import NO_LABELS
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import (
    Caller,
    Opened,
    Request,
    foreign_cursor,
    go_to,
    read_cursor,
    write_cursor,
)
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.log.history import History, ReadingTime, readable, records_of
from baton.runtime.requests.answers import Incident, IncidentPage, IncidentService
from baton.runtime.requests.costs import aws_costs, costs_page, day_costs, rows_of_day, saga_cost
from baton.runtime.requests.lists import (
    Answers,
    Inboxes,
    ListedQuestion,
    Listing,
    QuestionPage,
    SagaPage,
    SagaRow,
    of_saga,
)
from baton.runtime.requests.messages import LiveTexts, MessagePage, live_texts, messages_of

if TYPE_CHECKING:
    from baton.core.documents import schema
    from baton.runtime.requests import versions as versions_of
else:
    schema = OnDemand("baton.core.documents.schema")
    versions_of = OnDemand("baton.runtime.requests.versions")

T = TypeVar("T")
PAGE = 200  # entries read at once, so that a long log is never in memory as a whole
PART = 1_000_000  # bytes of a large value in one answer: as a text in JSON they double, and double again


async def find_value(log: Log, call: StoreRetrier, clock: Clock, opened: Opened, digest: str) -> Value:
    """Return the value of this digest in the saga's state or, where that has let go of it, in its log,
    over all branches.

    Raises `NotFound`, and `TooLarge` for a log that cannot be read before the end of the request.
    """
    ref, state = SCHEME + digest, opened.history.state
    if (found := value_of(state, ref)) is not None:
        return found
    async with aclosing(records_of(log, call, opened.head.ref, state.lineage.branch + 1, 0, PAGE)) as pages:
        async for page in pages:
            for entry in readable(page):
                for event in entry.events:
                    if (found := value_of(event, ref)) is not None:
                        return found
            if clock.now() >= call.deadline:
                raise TooLarge(
                    f"the log of this saga is too long to be searched within one request: of {state.version} "
                    f"versions it came to {page[-1].version}"
                )
    raise NotFound(f"the log of `{state.origin.saga}` names no value {ref}")


class StoredValue(View):
    """A value referred to in the log as `cas://sha256/…`. A value that is too large for one answer is
    returned in parts of its JSON.
    """

    ref: Annotated[str, "SHA-256 digest of the value's JSON, which identifies the value."]
    size: Annotated[Version, "Size of the value's JSON in bytes."]
    value: Annotated[Any, "The value. Null if the value is returned in parts."]
    part: Annotated[str | None, "Next part of the JSON, if the value is returned in parts."]
    next: Annotated[int | None, "Value of `after` for the next part. Null for the last part."]


def value_page(ref: str, data: bytes, after: int, most: int) -> StoredValue:
    """Return the value if an answer has room for it (`most` bytes),
    else the part of its JSON that begins with byte `after`.
    """
    if len(data) <= most:
        return StoredValue(ref=ref, size=len(data), value=msgspec.json.decode(data), part=None, next=None)
    end = min(after + PART, len(data))
    while end < len(data) and data[end] & 0xC0 == 0x80:  # not within a character
        end -= 1
    text = data[after:end].decode(errors="replace")
    rest = end if end < len(data) else None
    return StoredValue(ref=ref, size=len(data), value=None, part=text, next=rest)


def _never(_: Story) -> bool:
    return False


async def story_of(
    log: Log,
    call: StoreRetrier,
    clock: Clock,
    opened: Opened,
    is_enough: Callable[[Story], bool] = _never,
    wants: Callable[[str, int], bool] = wants_nothing,
) -> Story:
    """Read the story of the log up to the state that was opened, without branches that a fork left.

    Reading stops once `is_enough`. That is asked in the present branch only, because a fork replaces what
    came before it. Raises `TooLarge` for a log that takes too much of the request's time.
    """
    ref, state = opened.head.ref, opened.history.state
    story, time = Story(opened.program, wants), ReadingTime(clock, call.deadline)

    async def change(branch: int, first: int) -> None:
        """Take in the changes of the fork that has begun a branch with this version."""
        for record in await call(log.read_tail, ref, branch - 1, first - 2, 1) if branch else ():
            story.change(decode_entry(record.data))

    for segment in lineage_to(state):
        after = segment.first - 1
        await change(segment.branch, segment.first)
        while after < segment.last and not (segment.branch == state.lineage.branch and is_enough(story)):
            if after:
                time.check("explained", state.version, after)
            page = await call(log.read_tail, ref, segment.branch, after, min(PAGE, segment.last - after))
            if not page:
                raise CorruptLog(f"{ref} has no version {after + 1} in branch {segment.branch}")
            for record in page:
                story.add(decode_entry(record.data))
            after = page[-1].version
    if state.lineage.first > state.version:
        await change(state.lineage.branch, state.lineage.first)
    story.agree_with(state)
    return story


class Fetching:
    """Values outside of the log, and entries of undone steps, that views of a saga's attempts need."""

    def __init__(self, engine: Engine, call: StoreRetrier, tenant: str, history: History) -> None:
        self._engine, self._call, self._tenant, self._history = engine, call, tenant, history
        self._blobs: dict[str, Any] = {}
        self._entries: dict[int, Entry] = {}

    async def of(self, make: Callable[[FetchedValues], T]) -> T:
        """Return what `make` returns, once it lacks nothing more."""
        while True:
            try:
                return make(FetchedValues(blobs=self._blobs, entries=self._entries))
            except LackingError as error:
                if not error.needs and not error.entries:
                    raise
                for version in error.entries:
                    found = await self._history.entries_to(version)
                    self._entries.update({one.version: one for one in found})
                for ref in error.needs:
                    self._blobs[ref] = None
                    if len(self._blobs) <= MOST_INPUTS:
                        data = await self._call(self._engine.blobs.get, self._tenant, ref)
                        self._blobs[ref] = msgspec.json.decode(data)


MAX_EVENTS = 1_000
MOST_RUNS = 1_000  # attempts of one node, the last ones
MAX_LIST = 100
MAX_VERSIONS = 100
EVENTS_AT_ONCE = 100  # entries of nearly 200 kB each are never in memory by the thousand
MAX_SHOWN = 2_000_000  # bytes of a result or of entries; Lambda answers with 6 MB, and quotes double, and double again


class Queries:
    """The reading use cases of the API, for one caller until one deadline (epoch ms)."""

    def __init__(self, engine: Engine, caller: Caller, deadline: int) -> None:
        self._request = Request(engine, caller, deadline)
        self._request.is_reader = True
        self._engine = engine
        self._tenant = caller.tenant
        self._parts = self._request.parts

    # ---- money

    async def budget(self) -> Budget:
        """Return today's spending of the caller's sagas, and that of the tenant."""
        now, cache, user = self._engine.clock.now(), self._engine.ledger_cache, self._request.caller.user
        sums = tenant = Sums()
        if cache.terms.counts_days:
            sums = await cache.sums(self._parts.call, self._tenant, user, now)
        if cache.terms.tenant_day:
            tenant = await cache.sums(self._parts.call, self._tenant, "", now)
        both = (tenant.spent, tenant.reserved)
        return budget_view(user, sums.spent, sums.reserved, cache.terms, day_of(now), both, sums.rule)

    async def costs(self, *, by: str = "", of: str = "", day: int = 0, cursor: str = "") -> CostPage:
        """Return the cost of the tenant's models on a day (epoch ms; 0: today), by workflow, user or model.

        In pages: `next` continues it. A key is on several pages; their sums add up. `of`: AWS for the cost of
        AWS instead, for which the logs are read. Raises `UserError` for the cost of AWS by model.
        """
        number, by = day_of(day or self._engine.clock.now()), by or BY[0]
        if of == AWS:
            if by == BY[-1]:
                raise UserError(
                    f"AWS charges nothing by {by}: ask by {BY[0]} or {BY[1]}, or for `of={MODELS}`"
                )
            return costs_page(shown_day(number), by, *await aws_costs(self._request, number, by, cursor))
        found = await day_costs(self._engine.log, self._parts.call, self._tenant, number, by, cursor)
        return costs_page(shown_day(number), by, *found)

    async def error_budgets(self, *, day: int = 0, cursor: str = "") -> ErrorBudgetPage:
        """Return the number of sagas failed on a day (epoch ms; 0: today), and how many more may, in pages
        whose sums add up.
        """
        number, percent = (
            day_of(day or self._engine.clock.now()),
            float(self._engine.limits.error_budget_percent),
        )
        budgets, groups = ErrorBudgets(percent), LISTS["done"][0]

        def take(row: Listed) -> None:
            budgets.add(row.workflow, row.status)

        looked, after = await rows_of_day(
            self._engine.log, self._parts.call, self._tenant, number, cursor, take, groups
        )
        return ErrorBudgetPage(
            day=shown_day(number),
            percent=percent or None,
            workflows=budgets.rows(),
            looked_at=looked,
            next=after,
        )

    # ---- sagas

    async def open(self, saga: str, at: int = 0) -> Opened:
        """Load a saga as it is, or as it was at version `at`. Raises `NotFound`."""
        opened = await self._request.open(saga)
        await self.go_to(opened, at)
        return opened

    async def go_to(self, opened: Opened, at: int) -> None:
        """Go back to version `at` of a saga, and to the graph that it ran then. Raises `NotFound`."""
        newest = opened.history.state.origin.graph
        await go_to(opened.history, at)
        if opened.history.state.origin.graph != newest:
            opened.program = await self._request.program_of(opened.history)

    async def show(self, saga: str, at: int = 0) -> Saga:
        """Return the saga's view, folded from its log up to version `at`, or whole. Raises `NotFound`."""
        head, history = await self._request.read(saga)
        await go_to(history, at)
        return await self.view(head, history)

    async def view(self, head: Head, history: History) -> Saga:
        """Return the view of a saga that was read, also if its graph is lost."""
        state = history.state
        try:
            view = saga_view(state, await self._request.program_of(history), self._engine.tools)
        except MissingGraph as error:
            view = view_without_graph(state, head.status, str(error))
        output = state.ended.output if state.ended else Value()
        view.result, view.large_result = await self._shown(output)
        given = state.origin.input
        try:
            view.input, view.large_input = await self._shown(given)
        except CorruptLog:  # the view of a saga whose blob is gone is what a person needs
            view.input, view.large_input = None, LargeValue(ref=given.ref, size=given.size)
        view.workflow_version = await self._version_of(state)
        await add_related_sagas(view, self._engine, self._parts, head.ref, state)
        if (damage := history.unread) is not None:
            view.status, view.unreadable = (
                head.status,
                UnreadableEntries(damage.first, damage.last, damage.why),
            )
        return view

    async def live(self, saga: str, after: int | None = None) -> LiveTexts:
        """Return the texts that the models of a saga are writing just now, and with `after` the answers that
        have ended since that version. Raises `NotFound`.
        """
        return await live_texts(self._engine, self._parts, self._request.ref_of(saga), after)

    async def messages(self, saga: str, after: int, limit: int) -> MessagePage:
        """Return a page of what a saga's agents were told and have answered, in the order of its log."""
        return await messages_of(self._engine, self._parts, await self._request.open(saga), after, limit)

    async def _shown(self, value: Value) -> tuple[Any, LargeValue | None]:
        """Return a value, or its reference if an answer has no room for it."""
        if value.size > MAX_SHOWN:
            return None, LargeValue(ref=value.ref, size=value.size)
        return await self._content(value), None

    async def _version_of(self, state: State) -> int | None:
        """Return the version of the document whose graph the saga runs, if it is one of the newest 100."""
        name, graph = state.origin.workflow.partition("@")[0], state.origin.graph
        newest = await self._parts.catalog.newest(self._tenant, starter_of(name))
        if newest is None:
            return None
        if newest.graph == graph.partition("#")[0]:
            return newest.version
        versions = await self._parts.catalog.versions(self._tenant, name, MAX_VERSIONS)
        return next((one.version for one in versions if one.graph == graph), None)

    async def _content(self, value: Value) -> Any:
        if not value.ref:
            return value.v
        return msgspec.json.decode(await self._parts.call(self._engine.blobs.get, self._tenant, value.ref))

    async def value(self, saga: str, digest: str, after: int) -> StoredValue:
        """Return a value that the saga's log names by its digest,
        or the part of its JSON behind `after` bytes.

        Raises `NotFound`, `TooLarge`, and `UserError` for an `after` that is none of its parts.
        """
        opened = await self._request.open(saga)
        engine = self._engine
        found = await find_value(engine.log, self._parts.call, engine.clock, opened, digest)
        data = msgspec.json.encode(found.v)
        if found.ref:
            data = await self._parts.call(engine.blobs.get, self._tenant, found.ref)
        if after >= len(data):
            raise UserError(f"after is below {len(data)}, the size of the value")
        return value_page(SCHEME + digest, data, after, MAX_SHOWN)

    async def cost(self, saga: str) -> Cost:
        """Return the cost of a saga so far, estimated from its whole log. Raises `NotFound`, `TooLarge`."""
        opened = await self._request.open(saga)
        engine = self._engine
        return await saga_cost(
            engine.log, self._parts.call, engine.clock, opened, BillingSettings.of(engine.limits)
        )

    async def way(self, saga: str, after: int, limit: int, at: int = 0) -> Way:
        """Return the path of a saga, in the order in which its nodes were settled, in pages: `next` continues
        it.

        A page has about `limit` nodes. Raises `NotFound`, `TooLarge`.
        """
        opened = await self.open(saga, at)
        story = await self.story(opened, lambda story: has_page(story, after, limit))
        return way(story, after, limit, MAX_SHOWN, **_named(opened))

    async def explain(self, saga: str, node: str, at: int = 0) -> Explanation:
        """Explain for each round of a node why it ran, or did not.
        Raises `NotFound` with the nearest name, `TooLarge`.
        """
        opened = await self.open(saga, at)

        def forget_old(story: Story) -> bool:
            del story.runs[:-MOST_RUNS]
            return False

        story = await self.story(opened, forget_old, lambda name, _: name == node)
        found = await self.run_views(opened, story, [*story.runs, *open_slots(story, node)])
        runs: dict[str, list[StepRun]] = {}
        for run in found:
            runs.setdefault(slot_of(run.node, tuple(run.iteration)), []).append(run)
        return explain(story, node, MAX_SHOWN, runs, **_named(opened))

    async def steps(self, saga: str, after: int, limit: int, kind: str = "", at: int = 0) -> StepPage:
        """Return a page of the attempts of a saga, in the order of its log; `next` continues it.

        `kind`: `undo` for those of inverses, `alternative` for those of a model's alternatives, `step` for
        others. A page has about `limit`, all of each entry. Raises `NotFound`, `TooLarge`.
        """
        opened = await self.open(saga, at)
        story = await self.story(
            opened,
            lambda story: page_of_runs(story, after, limit, kind)[1] is not None,
            lambda _, version: version > after,
        )
        runs, rest = page_of_runs(story, after, limit, kind)
        is_shown = rest is None and kind in ("", STEP)
        open_ones = open_slots(story)[:limit] if is_shown else ()
        steps = await self.run_views(opened, story, [*runs, *open_ones])
        return StepPage(steps=steps, next=rest, **_named(opened))

    async def story(
        self,
        opened: Opened,
        is_enough: Callable[[Story], bool] = _never,
        wants: Callable[[str, int], bool] = wants_nothing,
    ) -> Story:
        """Call `story_of`."""
        engine = self._engine
        return await story_of(engine.log, self._parts.call, engine.clock, opened, is_enough, wants)

    async def run_views(
        self, opened: Opened, story: Story, runs: Sequence[AttemptEnd | str]
    ) -> list[StepRun]:
        """Return attempts with their inputs."""
        fetching = Fetching(self._engine, self._parts.call, self._tenant, opened.history)
        views: list[StepRun] = []
        for run in runs:
            if isinstance(run, str):
                slot, make = run, partial(open_run, story.program, story.state, run)
            else:
                slot, make = run.event.slot, partial(run_view, story.program.at(run.when.version), run)
            views.append(await fetching.of(make))
            views[-1].child = child_of(story.places[slot])
        return views

    async def events(self, saga: str, after: int, limit: int) -> dict[str, Any]:
        """Return a page of the log, in the order of versions, over all branches. `next` continues it.

        It has at most `limit` entries, and no more than an answer has room for, but at least one. Entries
        that are missing or cannot be read are named in `unreadable`.
        """
        if not 1 <= limit <= MAX_EVENTS or after < 0:
            raise UserError(f"limit is 1 to {MAX_EVENTS}, after is 0 or more")
        head, history = await self._request.read(saga)
        damage = history.unread
        last = history.state.lineage.branch if damage is None else damage.branch
        at_once = min(limit + 1, EVENTS_AT_ONCE)
        entries, lost = list[dict[str, Any]](), list[UnreadableEntries]()
        room, came_to = MAX_SHOWN, after
        log, call = self._engine.log, self._parts.call
        async with aclosing(records_of(log, call, head.ref, last + 1, after, at_once)) as pages:
            async for page in pages:
                for record in page:
                    if record.version > came_to + 1:
                        lost.append(UnreadableEntries(came_to + 1, record.version - 1, MISSING))
                    try:
                        view = entry_view(decode_entry(record.data))
                    except CorruptLog as error:
                        lost.append(UnreadableEntries(record.version, record.version, str(error)))
                        came_to = record.version
                        continue
                    room -= len(msgspec.json.encode(view))
                    if entries and (len(entries) == limit or room < 0):
                        return _page(entries, lost, entries[-1]["version"])
                    entries.append(view)
                    came_to = record.version
        if damage is not None and damage.last > came_to:
            lost.append(UnreadableEntries(came_to + 1, damage.last, MISSING))
        return _page(entries, lost, None)

    async def sagas(
        self,
        *,
        status: str = "",
        workflow: str = "",
        user: str = "",
        label: str = "",
        since: int = 0,
        limit: int = 50,
        cursor: str = "",
    ) -> SagaPage:
        """Return a page of the tenant's sagas, the latest change first. `next` continues it.
        `label`: `name=value`, or several with commas.

        What is shown is what the last release left: a saga that is being worked on is shown as it was taken;
        `show` is exact. It changed when it last began to run, began to wait or ended; `since`: then or later
        (epoch ms).
        """
        _check_limit(limit)
        try:
            labels = read_labels(label) if label else NO_LABELS
        except ValueError as error:
            raise UserError(str(error)) from None
        listing = Listing(
            tenant=self._tenant, status=status, workflow=workflow, user=user, since=since, labels=labels
        )
        found, after = await listing.page(self._engine.log, self._parts.call, limit, cursor)
        return SagaPage(sagas=[_row(row) for row in found], next=after)

    async def incidents(self, *, status: str = "", limit: int = 50, cursor: str = "") -> IncidentPage:
        """Return a page of the tenant's incidents, the newest first. `next` continues it.
        `status`: one of `STATUSES`.
        """
        _check_limit(limit)
        return await self._incidents().page(status, limit, cursor)

    async def incident(self, id: str) -> Incident:
        """Return an incident. Raises `NotFound`."""
        return await self._incidents().show(id)

    def _incidents(self) -> IncidentService:
        engine = self._engine
        return IncidentService(engine.store.notice_record, self._parts.call, engine.clock, self._tenant)

    async def questions(
        self, *, saga: str = "", answered: str = "", limit: int = 50, cursor: str = ""
    ) -> QuestionPage:
        """Return a page of the open questions that are for the caller, what expires first in front.
        `next` continues it.

        With a `saga`, the first of its questions, whomever they are for, as its log has them.
        `answered`: instead those that are closed, the last ones, with their answers.
        Raises `NotFound`, `TooLarge`, and `UserError` for `answered` without a saga.
        """
        _check_limit(limit)
        engine = self._engine
        if answered == "true":
            if not saga:
                raise UserError("answers are listed by saga: add `saga`, as in ?saga=SAGA&answered=true")
            return QuestionPage(questions=(await self._answered(saga))[-limit:][::-1], next=None)
        if saga:
            opened = await self._request.open(saga)
            return QuestionPage(questions=of_saga(opened.history.state, engine.clock.now(), limit), next=None)
        inboxes = Inboxes(engine.store.questions, self._parts.call, engine.clock, self._request.caller)
        return await inboxes.page(limit, cursor)

    async def _answered(self, saga: str) -> list[ListedQuestion]:
        """Return the closed questions of a saga, over all branches, in the order of its log."""
        opened, log, call = await self._request.open(saga), self._engine.log, self._parts.call
        answers, time = Answers(opened.history.state), ReadingTime(self._engine.clock, call.deadline)
        branches = opened.history.state.lineage.branch + 1
        async with aclosing(records_of(log, call, opened.head.ref, branches, 0, PAGE)) as pages:
            async for page in pages:
                for entry in readable(page):
                    for event in entry.events:
                        answers.add(event)
                time.check("searched for answers", answers.state.version, page[-1].version)
        return answers.closed

    # ---- workflows

    async def workflows(self, limit: int = 50, cursor: str = "") -> dict[str, Any]:
        """Return a page of the tenant's workflows by name, each with its newest version.
        `next` continues it.
        """
        _check_limit(limit)
        found, last = await self._parts.catalog.page(self._tenant, _name(cursor), limit)
        after = write_cursor(last.encode()) if last else None
        return {"workflows": [_version(definition) for definition in found], "next": after}

    async def workflow(self, name: str, version: str = "") -> dict[str, Any]:
        """Return one version of a workflow, or of the graph `NAME.GRAPH` of its document, with its document
        and shape.

        Without `version` the newest, with a list of the others (the newest 100). Raises `NotFound` with the
        nearest name.
        """
        catalog = self._parts.catalog
        definition, graph = await catalog.shown(self._tenant, name, version)
        view = {**_version(definition), "document": await catalog.document(definition), **graph_view(graph)}
        if not version:
            versions = await catalog.versions(self._tenant, definition.name, MAX_VERSIONS)
            view["versions"] = [_version(one) for one in versions]
            tags = await catalog.tags(self._tenant, starter_of(name))
            view["tags"] = list(map(versions_of.tag_view, tags))
        return view

    async def workflow_of(self, saga: str, at: int = 0) -> dict[str, Any]:
        """Return the graph that a saga runs, or ran at version `at`, with its document. Raises `NotFound`."""
        opened = await self.open(saga, at)
        state = opened.history.state
        try:
            document = await self._parts.catalog.document_of(self._tenant, state.origin)
        except (NotFound, CorruptLog):
            document = None
        about = {"saga": saga, "at": state.version, "name": state.origin.workflow}
        shown = about | {"version": await self._version_of(state), "graph": state.origin.graph}
        return shown | {"document": document, **graph_view(opened.program.graph)}

    # ---- what workflows are made of

    async def tools(self) -> Tools:
        """Return the tools that this engine was started with, and that the tenant may use, by name."""
        tools = tools_for(self._tenant, self._engine.tools)
        return Tools(tools=[tool_view(tools[name]) for name in sorted(tools)])

    async def node_types(self) -> dict[str, Any]:
        """Return the kinds of nodes, each with the schema of its fields and an example,
        and the whole document's schema.
        """
        return {
            "node_types": schema.node_types(self._engine.kinds),
            "schema": schema.document_schema(self._engine.kinds),
        }


MISSING = "it is missing"


def _page(entries: list[dict[str, Any]], lost: list[UnreadableEntries], after: int | None) -> dict[str, Any]:
    page: dict[str, Any] = {"entries": entries, "next": after}
    return page | {"unreadable": lost} if lost else page


def _named(opened: Opened) -> dict[str, Any]:
    """Return the saga and the version that an answer is about."""
    state = opened.history.state
    return {
        "saga": state.origin.saga,
        "workflow": state.origin.workflow,
        "status": status_of(state, opened.program),
        "version": state.version,
        "branch": state.lineage.branch,
    }


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIST:
        raise UserError(f"limit is 1 to {MAX_LIST}")


def _row(row: Listed) -> SagaRow:
    return SagaRow(
        id=row.id,
        workflow=row.workflow,
        status=row.status,
        user=row.user,
        created_at=iso(row.created),
        changed_at=iso(row.changed),
        labels=row.labels,
    )


def _version(definition: Definition) -> dict[str, Any]:
    pauses = [
        {"code": one.code, "by": one.by, "at": iso(one.at), "reason": one.message}
        for one in definition.pauses
    ]
    shown = {"name": definition.name, "version": definition.version, "graph": definition.graph}
    shown |= {"created_at": iso(definition.created), "by": definition.by, "pauses": pauses}
    return shown | {"description": definition.description}


def _name(cursor: str) -> str:
    """Return the name that a list goes on after; none without a cursor."""
    name = read_cursor(cursor).decode(errors="replace") if cursor else ""
    if cursor and not re.fullmatch(WORKFLOW_NAME, name):
        raise foreign_cursor()
    return name


async def add_related_sagas(
    view: Saga, engine: Engine, scope: InvocationScope, ref: SagaRef, state: State
) -> None:
    """Add the sagas related to this one.
    A handler has no parent: the saga that failed does not wait for it. Its status is in its own head.
    """
    view.parent = SagaRef.parse(of).id if (of := state.origin.parent) else None
    view.handles = (
        ref.id.rsplit(".", 2)[0] if view.parent is None and ref.id.endswith(f".{HANDLER}") else None
    )
    view.failure_handler = handler = handler_view(state)
    if handler is not None and handler.saga:
        head = await scope.call(engine.log.read_head, SagaRef(ref.tenant, handler.saga))
        handler.status = head.status if head is not None else None
