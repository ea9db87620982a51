"""Operations of a caller: register, start, cancel, signal, answer, resume, fork.
Reads are in `queries`.

One `Service` per request. Every entry appended here carries a wake, so that the table's stream wakes the
saga.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.decide.spending import renewed_budget
from baton.core.log.events import PAUSED, Ask, CancelRequested, Event, Resumed, SignalReceived
from baton.core.log.folding.received import CallbackReport, is_same_signal, reply_of, signal_key
from baton.core.log.functions import reply_in
from baton.core.log.questions import Answer
from baton.core.log.records import Failure, Sent, failed_with
from baton.core.log.state import State, status_of
from baton.core.money import dollars
from baton.core.on_demand import OnDemand
from baton.errors import InvalidInput, KeyReused, NotAllowedNow, Problem
from baton.ports import SagaRef
from baton.ports.log import NO_LABELS
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import (
    Caller,
    Request,
    accepted_answer,
    check_signal,
    id_of_start,
    new_trace,
    saga_summary,
    signal_entry,
)
from baton.runtime.log.history import History
from baton.runtime.requests.answers import IncidentService, QuestionService, answer_by, give
from baton.runtime.requests.operators import BreakerService, LetterService, UserService
from baton.runtime.starting.catalog import Registered
from baton.runtime.starting.start import StartRequest, body_hash, refuse_another_body

if TYPE_CHECKING:
    from baton.runtime import recovery
    from baton.runtime.requests import (
        aliases,
        callbacks,
        claims,
        copying,
        events,
        facts,
        fork_changes,
        forking,
        lists,
        messages,
        patching,
        registering,
        schedules,
        steering,
        versions,
        warming,
    )
else:
    aliases = OnDemand("baton.runtime.requests.aliases")
    recovery = OnDemand("baton.runtime.recovery")
    lists = OnDemand("baton.runtime.requests.lists")
    callbacks = OnDemand("baton.runtime.requests.callbacks")
    claims = OnDemand("baton.runtime.requests.claims")
    copying = OnDemand("baton.runtime.requests.copying")
    events = OnDemand("baton.runtime.requests.events")
    facts = OnDemand("baton.runtime.requests.facts")
    fork_changes = OnDemand("baton.runtime.requests.fork_changes")
    forking = OnDemand("baton.runtime.requests.forking")
    messages = OnDemand("baton.runtime.requests.messages")
    patching = OnDemand("baton.runtime.requests.patching")
    registering = OnDemand("baton.runtime.requests.registering")
    schedules = OnDemand("baton.runtime.requests.schedules")
    steering = OnDemand("baton.runtime.requests.steering")
    versions = OnDemand("baton.runtime.requests.versions")
    warming = OnDemand("baton.runtime.requests.warming")

ENDED_BY_PERSON = "conversation_ended"
"""Code of the failure in the signal after which an agent is sent no message."""
OUTCOMES = WAITING, TAKEN, ANSWERED, LOST, ENDED = "waiting", "taken", "answered", "lost", "ended"


class Service:
    """The use cases of the API, for one caller until one deadline (epoch ms)."""

    def __init__(self, engine: Engine, caller: Caller, deadline: int) -> None:
        self._request = Request(engine, caller, deadline)
        self._engine = engine
        self._caller = self._request.caller
        self._parts = self._request.parts
        self._append, self._unstored = self._request.append, self._request.unstored

    @cached_property
    def questions(self) -> QuestionService:
        """Open questions, and what people say to them."""
        return QuestionService(self._request, self._append)

    @property
    def letters(self) -> LetterService:
        """Dead letters, and what an operator does about one."""
        return LetterService(self._request)

    @cached_property
    def incidents(self) -> IncidentService:
        """Incidents of the tenant, and what an operator does about one."""
        engine, caller = self._engine, self._caller
        return IncidentService(
            engine.store.notice_record, self._parts.call, engine.clock, caller.tenant, caller.by
        )

    @property
    def breakers(self) -> BreakerService:
        """Circuit breakers of the tenant, and what an operator does about one."""
        return BreakerService(self._request)

    @property
    def claims(self) -> claims.ClaimService:
        """Claims of once-only effects, and what an operator does about one."""
        return claims.ClaimService(self._request)

    @property
    def aliases(self) -> aliases.AliasService:
        """Aliases of the tenant, and what an operator does about one."""
        return aliases.AliasService(self._request)

    @property
    def facts(self) -> facts.FactService:
        """Facts of the tenant's users."""
        return facts.FactService(self._request)

    @property
    def users(self) -> UserService:
        """Users of the tenant, what they have spent, and what an operator decides about one."""
        return UserService(self._request)

    @property
    def schedules(self) -> schedules.ScheduleService:
        """Schedules of the tenant, and what is done about one."""
        return schedules.ScheduleService(self._request)

    @property
    def versions(self) -> versions.VersionService:
        """Tags and versions of the tenant's workflows."""
        return versions.VersionService(self._request)

    @property
    def event_service(self) -> events.EventService:
        """Handler of events from outside."""
        return events.EventService(self._request, self.signal)

    async def register(self, text: str, *, json_only: bool) -> Registered:
        """Register a workflow document. Raises `MalformedDocument`, `InvalidDefinition`, `TooLarge`."""
        return await registering.register_workflow(
            self._parts, self._engine, self._caller, text, json_only=json_only
        )

    async def workflow_tools(self, cursor: str = "") -> tuple[list[lists.WorkflowTool], str | None]:
        """Return a page of the workflows that are tools at `/mcp`, and the cursor of the next one."""
        return await lists.workflow_tools(self._parts.catalog, self._caller.tenant, cursor)

    async def is_workflow_tool(self, name: str) -> bool:
        """Return true if the newest version of a workflow is a tool at `/mcp`."""
        found = await self._parts.catalog.newest(self._caller.tenant, name)
        return found is not None and found.mcp

    async def start(
        self,
        workflow: str,
        given: Any,
        key: str,
        *,
        said: Any = None,
        labels: Mapping[str, str] = NO_LABELS,
        correlation_key: str = "",
    ) -> tuple[dict[str, Any], bool]:
        """Start a saga; (its view, whether it is new). The same key and body
        give the same saga. `said`: what the body is, else all.

        `correlation_key`, in the place of a key: there is one saga of the workflow with it, which events
        find.
        """
        caller = self._caller
        key, saga = id_of_start(self._engine, caller, workflow, key, correlation_key)
        ref = SagaRef(caller.tenant, saga)
        hashed = body_hash(said or [workflow, given, *([labels] if labels else [])])
        head = await self._parts.call(self._engine.log.read_head, ref) if key else None
        if head is not None:
            refuse_another_body(head, hashed)
            # Whatever became of the workflow's name and schema, and of the user's money, since: it has been started.
            opened = await self._request.open(ref.id)
            return saga_summary(opened) | {"workflow": opened.history.state.origin.workflow}, False
        now = self._engine.clock.now()
        await self._engine.ledger_cache.refuse_the_blocked(self._parts.call, caller.tenant, caller.user, now)
        definition, _ = await asyncio.gather(
            self._parts.catalog.find(caller.tenant, workflow), self._parts.quota.admit(caller.tenant)
        )
        request = StartRequest(
            ref=ref,
            definition=definition,
            program=await self._parts.catalog.program(caller.tenant, definition.graph),
            given=given,
            user=caller.user,
            invocation=caller.request,
            traceparent=caller.traceparent or new_trace(self._engine),
            body_hash=hashed,
            labels=labels,
        )
        is_new = await self._parts.starter.start(request)
        view = {"id": request.ref.id, "status": "pending", "workflow": definition.name, "version": 1}
        if not is_new:
            view |= saga_summary(await self._request.open(request.ref.id))
        return view, is_new

    async def warm(self, tool: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Call a tool with a cache ahead of the steps that need its result, as `start`."""
        register = partial(self.register, json_only=True)
        return await warming.call_ahead(self._request, tool, arguments, register, self.start)

    async def cancel(self, saga: str, reason: str, grace_ms: int, *, undo: bool = False) -> dict[str, Any]:
        """Cancel a saga: running steps get `grace_ms`, then are stopped.
        A no-op on a saga that has ended cancelled. `undo`: the saga takes back its work before it ends.
        """

        def make(state: State, now: int) -> Event | None:
            if state.undo.work is not None:
                raise NotAllowedNow("the saga undoes what it has done; it ends when that is over")
            cancel = CancelRequested(reason=reason, by=self._caller.by, at=now, grace_ms=grace_ms, undo=undo)
            known = state.cancel
            is_longer = known is not None and known.at + known.grace_ms <= now + grace_ms
            is_news = undo and known is not None and not known.undo
            return None if is_longer and state.parked is None and not is_news else cancel

        opened = await self._request.open(saga)
        try:
            cancelled = await self._append(opened, make)
            await self.incidents.resolve_all(saga)
            return cancelled
        except NotAllowedNow:
            ended = opened.history.state.ended
            if ended is not None and ended.status == "cancelled":
                return accepted_answer(opened, changed=False)
            raise

    async def signal(
        self,
        saga: str,
        name: str,
        payload: Any,
        key: str,
        failure: Failure | None = None,
        sent: Sent | None = None,
    ) -> dict[str, Any]:
        """Send a signal; one with a key that is known already changes nothing.
        A wait that takes one with a `failure` fails. The answer has the `outcome` of the signal so far.

        Raises `InvalidInput` for a payload that fits the schema of no wait that can still take it, and for
        one that an update of a function did not take.
        """
        opened = await self._request.open(saga)
        check_signal(opened, name)
        value, blob = self._unstored(opened.history, payload, "a payload")
        unique = key or self._engine.entropy.token(96)
        remembered = signal_key(name, unique)

        def is_known(state: State) -> bool:
            known = state.keys.get(remembered)
            if known is not None and not is_same_signal(known, value, failure):
                what = "payload" if failure is None else "failure"
                raise KeyReused(f"signal `{name}` came with another {what} under this key")
            return known is not None

        def make(state: State, now: int) -> Event | None:
            signal = SignalReceived(
                name=name, key=unique, payload=value, by=self._caller.by, at=now, failure=failure, sent=sent
            )
            return signal_entry(opened.program, state, signal, payload, self._engine.limits.signals_kept)

        accepted = await self._append(opened, make, is_known, blob, value.ref)
        return {**accepted, "key": unique, **await self._outcome(opened.history, name, unique)}

    async def say(
        self, saga: str, text: str, key: str, *, to: str = "", ends: bool = False
    ) -> dict[str, Any]:
        """Send a message to an agent of a saga: the signal that it hears. `to`: the agent's node, if several
        hear different signals. `ends`: no message follows, and the conversation ends with the last answer.

        Raises `NotFound` with the agents that there are.
        """
        opened = await self._request.open(saga)
        name = messages.message_signal(opened, to)
        failure = failed_with(ENDED_BY_PERSON, "the conversation was ended") if ends else None
        return await self.signal(saga, name, None if ends else text, key, failure)

    async def _outcome(self, history: History, name: str, key: str) -> dict[str, Any]:
        """Return what has become of a signal: one of `OUTCOMES`, and the function's answer to it."""
        state, full = history.state, signal_key(name, key)
        if version := reply_of(state.keys.get(full, "")):
            (entry,) = await history.entries_to(version, 1)
            given = reply_in(entry.events, full)
            reply = given.v
            if given.ref:
                blobs, tenant = self._engine.blobs, self._caller.tenant
                reply = msgspec.json.decode(await self._parts.call(blobs.get, tenant, given.ref))
            if "refused" in reply:
                raise InvalidInput(f"no wait for `{name}` takes this payload: {reply['refused']}")
            return {"outcome": ANSWERED, "answer": reply["answer"]}
        if state.ended is not None:
            return {"outcome": ENDED, "answer": None}
        if full not in state.keys:
            return {"outcome": LOST, "answer": None}
        waits = any(one.name == name and one.key == key for one in state.signals)
        return {"outcome": WAITING if waits else TAKEN, "answer": None}

    async def answer(
        self, saga: str, answer: Answer, key: str, check: Callable[[State, Ask, int], None] | None = None
    ) -> dict[str, Any]:
        """Answer an open question; the same answer again changes nothing.

        `check`, in the place of who may answer: what the caller shows has to be good for the question at that
        time; and it is good for one answer.

        Raises `NotFound` with the questions that are open, `Forbidden` with whom the question is for,
        `InvalidInput` with all that is wrong with the answer, `NotAllowedNow` for a question that has another
        one.
        """
        return await give(self._request, self.incidents, saga, answer, key, check)

    async def resume(self, saga: str, budget: int = 0) -> dict[str, Any]:
        """Repair a saga that does not go on by itself; let a paused one go on, or a parked one try again,
        with its tries counted anew.

        It ends all pauses of a paused saga, and leaves it parked if it was. `budget`: micro-dollars that it
        may spend in all. Without one, a saga that was parked for its money may spend as much again. Raises
        `NotAllowedNow` for a saga that needs a person first.
        """
        ref = self._request.ref_of(saga)
        examined, repaired = await self._doctor.treat(ref, asked=True)
        if left := examined.findings:
            raise NotAllowedNow(f"{left[0].message}; {left[0].remedy}")

        def make(state: State, now: int) -> Event | Sequence[Event] | None:
            if state.parked is None:
                if budget:
                    raise NotAllowedNow(f"only a parked saga gets a budget; this one is {status_of(state)}")
                return None
            if state.parked.is_pause:
                pauses = (one.code for one in state.parked.all if one.is_pause)
                return [Resumed(by=self._caller.by, at=now, code=code) for code in pauses]
            if 0 < budget <= state.money.spent:
                spent = f"{dollars(state.money.spent)} dollars are spent; `budget_usd` is for the whole saga"
                raise InvalidInput(f"at /budget_usd: {spent}", (Problem("/budget_usd", spent),))
            more = budget or renewed_budget(state, self._engine.ledger_cache.terms)
            return Resumed(by=self._caller.by, at=now, budget=more)

        opened = await self._request.open(saga)
        if repaired and opened.history.state.ended is not None:
            return accepted_answer(opened, changed=True)
        resumed = await self._append(opened, make)
        if opened.history.state.parked is None:
            await self.incidents.resolve_all(saga)
        return {**resumed, "changed": resumed["changed"] or bool(repaired)}

    @property
    def _doctor(self) -> recovery.Doctor:
        return recovery.Doctor(self._engine, self._parts, self._caller.by)

    async def diagnosis(self, saga: str, *, repairs: bool) -> recovery.Diagnosis:
        """Return what is wrong with a saga, after its repair if that is asked for. Raises `NotFound`."""
        return await self._doctor.diagnosis(self._request.ref_of(saga), repairs=repairs)

    async def replay(self, saga: str) -> recovery.Replay:
        """Fold a saga's log again, decide again, and return the first divergence. Raises `NotFound`."""
        return await self._doctor.replay(self._request.ref_of(saga))

    async def diagnoses(self, *, repairs: bool, limit: int, cursor: str) -> recovery.DiagnosisPage:
        """Return what is wrong with a page of the tenant's open sagas, as `diagnosis`."""
        tenant = self._caller.tenant
        listing = lists.Listing(tenant=tenant, status="open")
        rows, after = await listing.page(self._engine.log, self._parts.call, limit, cursor)
        found = await self._doctor.page([row.id for row in rows], tenant, repairs=repairs)
        return recovery.DiagnosisPage(examined=len(rows), sagas=found, next=after)

    async def pause(self, saga: str, reason: str) -> dict[str, Any]:
        """Hold a saga back until it is resumed: it begins nothing, and its time stands still.
        Repeated, it changes nothing.
        """
        pause = steering.Pause(PAUSED, self._caller.by, reason)
        return await self._append(await self._request.open(saga), pause.begin)

    @property
    def many(self) -> steering.SteeringService:
        """Actions on many sagas at once."""
        return steering.SteeringService(self._request)

    async def retry(self, saga: str, key: str) -> dict[str, Any]:
        """Retry a failed saga from its failed step, in a new branch. A repeated key makes no second one."""
        retried = await steering.retry_saga(self._request, await self._request.open(saga), key)
        if retried["changed"]:
            await self.incidents.resolve_all(saga)
        return retried

    async def wake(self, saga: str) -> dict[str, Any]:
        """Have a worker look at a saga now. Repeated, it does so once more."""
        return await steering.wake_saga(self._request, await self._request.open(saga))

    async def fork(self, saga: str, cut: int, reason: str, key: str = "") -> dict[str, Any]:
        """Continue a saga from its state at version `cut` in a new branch; also one that has ended.
        A repeated key makes no second fork.
        """
        return await self.fork_with(saga, key, version=cut, reason=reason)

    async def fork_with(
        self, saga: str, key: str, *, dry_run: bool = False, new: bool = False, **wanted: Any
    ) -> dict[str, Any]:
        """Fork as `ForkRequest(**wanted)` says. `dry_run`: only say what the fork would leave behind.
        `new`: as a new saga.
        """
        asked, opened = fork_changes.ForkRequest(**wanted), await self._request.open(saga)
        if new and dry_run:
            _, _, changes = await copying.plan_of_new(self._request, opened, asked, is_dry=True)
            return saga_summary(opened) | {"plan": changes.plan}
        if new:
            return await copying.fork_to_new(self._request, opened, asked, key)
        if dry_run:
            return await forking.fork_plan(self._request, opened, asked)
        forked = await forking.fork_saga(self._request, opened, asked, key)
        if forked["changed"]:
            await self.incidents.resolve_all(saga)
        return forked

    async def patch(self, saga: str, wanted: patching.Patch, key: str = "") -> patching.PatchedSaga:
        """Change the graph of a saga that runs. A repeated key changes nothing."""
        return await patching.patch_saga(self._request, saga, wanted, key)

    async def rollback(
        self, saga: str, wanted: CancelRequested, key: str = "", step: str = ""
    ) -> dict[str, Any]:
        """Undo what the saga has done since version `wanted.back_to`, or since a step was done.
        What runs is stopped; what has ended goes on in a new branch.
        """
        by_caller = msgspec.structs.replace(wanted, by=self._caller.by)
        done = await forking.roll_back(self._request, await self._request.open(saga), by_caller, key, step)
        await self.incidents.resolve_all(saga)
        return done

    async def rollback_plan(self, saga: str, back_to: int, step: str = "") -> dict[str, Any]:
        """Return the steps that a rollback would undo, and undo nothing."""
        opened = await self._request.open(saga)
        return saga_summary(opened) | {
            "plan": await forking.plan_to(opened.history, opened.program, back_to, step)
        }

    async def callback(self, token: str, said: CallbackReport) -> dict[str, Any]:
        """Take in what work elsewhere says, for the caller who shows its token.

        Raises `NotFound` for a token that is none, `CallbackOver` where it does
        not count any more, `NotAllowedNow` where something else was said before,
        `InvalidInput` for an output that the node's schema does not allow.
        """
        return await callbacks.complete_callback(self._request, token, said)

    async def announced(self, profile: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Take in what a provider of models announces: a saga is woken whose request is over.
        False where none is.

        Raises `Unauthenticated` for what the provider has not signed.
        """
        return await callbacks.take_announcement(self._request, profile, headers, body)

    async def confirm(self, token: str, answer: Answer) -> dict[str, Any]:
        """Answer the question that a token is for, for the caller who shows it.
        No id of a question is needed.

        Raises `NotFound` for a token that is none, `LinkOver` for one that does not count any more,
        and as `answer`; the second answer by a token is one to a question that has been answered.
        """
        return await answer_by(self.answer, self._request, token, answer)

    async def health(self) -> dict[str, str]:
        """Report that the table answers. Raises `StoreUnavailable` otherwise."""
        await self._parts.call(self._engine.log.read_head, SagaRef("-", "-"))
        return {"status": "ok"}
