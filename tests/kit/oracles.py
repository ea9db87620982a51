"""What must hold in a world whatever went wrong in it, each promise with the name of the oracle that watches it.

Promises about logs, deeds, money and callers, for every run. What a scenario comes to is in verdict.py, what is
promised about failing steps in audit.py.

A broken promise is a sentence that begins with the name of its oracle and a colon.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from decimal import Decimal
from itertools import combinations, pairwise

from baton.core.effects.toolspec import digest_of
from baton.core.log.events import (
    AttemptFailed,
    CallbackOpened,
    CancelRequested,
    ChildOpened,
    ChildrenAbandoned,
    ChildReported,
    Entry,
    Event,
    Forked,
    GaveUp,
    GraphChanged,
    NoticeDue,
    OperationsBegan,
    Parked,
    QuestionClaimed,
    QuestionClosed,
    QuestionOpened,
    Resumed,
    Revived,
    SagaEnded,
    SagaStarted,
    SignalReceived,
    StepFailed,
    StepInterrupted,
    StepSucceeded,
    UnitRecorded,
)
from baton.core.log.folding.received import HEARTBEAT, fingerprint
from baton.core.log.questions import APPROVE
from baton.core.log.slots import slot_of
from baton.core.log.state import ANSWER
from baton.core.money import micro_dollars
from baton.ports import Account, SagaRef
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.money.accounts import short_name
from baton.runtime.money.holds import PREFIX
from baton.runtime.people.question_rows import PLACES_DAY
from baton.runtime.recovery import Doctor
from tests.kit.callback_oracles import of_callbacks, unheard
from tests.kit.death_oracle import of_deaths
from tests.kit.function_scenarios import FUNCTIONS, UPDATES, of_functions, of_updates
from tests.kit.journal_scenarios import JOURNAL, of_journals
from tests.kit.links import of_links
from tests.kit.notice_oracles import of_notices
from tests.kit.order_scenarios import ORDERS, of_orders
from tests.kit.patch_scenarios import PATCHES, of_patches
from tests.kit.polls_and_children import undone_and_done_again
from tests.kit.process import FOREVER, Process
from tests.kit.question_oracles import of_questions
from tests.kit.roles import Acknowledged, Act
from tests.kit.shared_budget import of_trees
from tests.kit.simulated_models import of_requests
from tests.kit.tenant_day_oracle import of_tenants_days
from tests.kit.world import TENANT, USER, World

LOG, FENCE, ROWS, LIVENESS, DEEDS = "log", "fence", "rows", "liveness", "deeds"
CHILDREN, LATENESS, NOISE, CALLBACKS, MODELS = "children", "lateness", "noise", "callbacks", "models"
ACKNOWLEDGED, MONEY, DEATHS, ROLES, RESULT = "acknowledged", "money", "deaths", "roles", "result"
TOLD, ASKED, APPROVALS, INBOX = "told", "asked", "approvals", "inbox"
DOCTOR = "doctor"
STUCK = frozenset({"worker_killed", "over_budget"})  # parked for these, a saga is an incident
ALLOWED_TAKES = 60  # for nothing: sweeps, and a person who resumes
Logs = Mapping[str, list[Entry]]
_COSTS = CallbackOpened | AttemptFailed | StepFailed | StepInterrupted | StepSucceeded | UnitRecorded


def of_saga(world: World, saga: str) -> Iterator[str]:
    """Promises about one saga."""
    entries = world.entries(saga)
    yield from (f"{LOG}: {text}" for text in _log(world, saga, entries))
    epochs = [entry.epoch for entry in entries if entry.epoch]
    if epochs != sorted(epochs):
        yield f"{FENCE}: an older lease appended behind a newer one"
    yield from (f"{FENCE}: {text}" for text in _stale_starts(world, saga, entries))
    yield from (f"{FENCE}: {text}" for text in _unfenced(world, saga, entries))
    yield from (f"{ASKED}: {text}" for text in of_questions(entries))
    yield from (f"{CALLBACKS}: {text}" for text in of_callbacks(entries))
    done = [event for entry in entries for event in entry.events if isinstance(event, StepSucceeded)]
    seated = {slot_of(event.node, event.iteration) for event in done if event.tool == "seat"}
    written = {str(attributes["seated_by"]) for attributes in world.log.rows.values()}
    if seated != written:
        yield f"{ROWS}: rows were written by {sorted(written)}, but the log says {sorted(seated)}"
    for event in done:
        receipt = event.output.v.get("receipt") if isinstance(event.output.v, dict) else None
        if receipt is not None and receipt not in world.books.happened:
            yield f"{DEEDS}: the log says that it has happened, and it has not: {receipt}"


def of_world(world: World) -> Iterator[str]:
    """Promises about everything in a world that has come to rest."""
    logs = {head.ref.id: world.entries(head.ref.id) for head in world.log.heads()}
    yield from (f"{LIVENESS}: {text}" for text in _unfinished(world))
    yield from (f"{FENCE}: {text}" for text in world.stale)
    yield from (f"{DEEDS}: {text}" for text in _deeds(world))
    yield from (f"{CHILDREN}: {text}" for text in _orphans(world, logs))
    yield from (f"{ACKNOWLEDGED}: {text}" for text in _unheard(world, logs))
    yield from (f"{ASKED}: {text}" for text in of_links(world, logs))
    yield from (f"{CALLBACKS}: {text}" for text in _unheard_callbacks(world, logs))
    yield from (f"{MONEY}: {text}" for text in _money(world, logs))
    yield from (f"{MONEY}: {text}" for text in of_trees(world, logs))
    yield from (f"{APPROVALS}: {text}" for text in _unapproved(world, logs))
    yield from (f"{DEATHS}: {text}" for text in of_deaths(world, logs))
    yield from (f"{TOLD}: {text}" for text in (*_untold(world, logs), *of_notices(world)))
    yield from (f"{INBOX}: {text}" for text in _inbox(world, logs))
    yield from (f"{MODELS}: {text}" for text in of_requests(world, logs))
    yield from (f"{FUNCTIONS}: {text}" for text in of_functions(logs))
    yield from (f"{UPDATES}: {text}" for text in of_updates(world))
    yield from (f"{JOURNAL}: {text}" for text in of_journals(world, logs))
    yield from (f"{ORDERS}: {text}" for text in of_orders(world, logs))
    yield from (f"{PATCHES}: {text}" for text in of_patches(world, logs))
    yield from undone_and_done_again(world, logs)
    yield from (f"{NOISE}: {text}" for text in _noise(world, logs))
    yield from (f"{ROLES}: ended with {ending!r}" for ending in world.endings)


async def unhealthy(world: World) -> AsyncIterator[str]:
    """Findings of the doctor in a world that has come to rest: no writer leaves a saga so."""
    process = world.process("doctor")
    scope = InvocationScope(
        world.engine(process), Invocation("doctor", process.clock.now(), process.clock.now() + 600_000)
    )
    doctor = Doctor(world.engine(process), scope, "doctor")
    for head in world.log.heads():
        for one in (await doctor.examine(head.ref)).findings:
            yield f"{head.ref.id}: {one.code}: {one.message}"


def events_in(entries: list[Entry]) -> list[Event]:
    return [event for entry in entries for event in entry.events]


def settled(entries: list[Entry]) -> list[tuple[str, int]]:
    """Each end of a step, as slot and branch."""
    return [
        (event.slot, entry.branch)
        for entry in entries
        for event in entry.events
        if isinstance(event, StepSucceeded | StepFailed)
    ]


def _log(world: World, saga: str, entries: list[Entry]) -> Iterator[str]:
    if [entry.version for entry in entries] != list(range(1, len(entries) + 1)):
        yield f"the versions of {saga} are not 1, 2, 3 ..."
    if not all(entry.traceparent for entry in entries):
        yield "an entry belongs to no trace"
    twice = [slot for slot, count in Counter(settled(entries)).items() if count > 1]
    if twice:
        yield f"settled twice in one branch: {twice}"
    for before, entry in pairwise(entries):
        has_ended = any(isinstance(event, SagaEnded) for event in before.events)
        if has_ended and Forked not in map(type, entry.events):
            yield f"version {entry.version} follows the end of its branch"
    said = Counter(
        (entry.branch, event.name, event.key)
        for entry in entries
        for event in entry.events
        if isinstance(event, SignalReceived)
    )
    if repeated := [key for key, count in said.items() if count > 1]:
        yield f"signals were received twice: {repeated}"


def _stale_starts(world: World, saga: str, entries: list[Entry]) -> Iterator[str]:
    """Steps that an invocation started although a newer one had already written that it took over."""
    key, first_of = str(SagaRef(TENANT, saga)), dict[int, float]()
    for entry in entries:
        if entry.epoch:
            first_of.setdefault(entry.epoch, world.written.get((key, entry.version), math.inf))
    for at, id_, of in world.starts:
        process = world.processes[id_]
        # A clock that stood still tells its process nothing: then it knows what it has read, and no more.
        known_at = (
            max((t for t in process.read_at[key] if t < at), default=0)
            if process.lost_time_at < math.inf
            else at
        )
        if of == saga and any(
            epoch > world.epoch_of(id_, saga) and begun < known_at for epoch, begun in first_of.items()
        ):
            yield f"{id_} started a step under an old lease"


def _unfenced(world: World, saga: str, entries: list[Entry]) -> Iterator[str]:
    """The first entry of an heir says that it has taken over, before anything else."""
    key, newest = str(SagaRef(TENANT, saga)), 0
    for entry in entries:
        is_first, before = entry.epoch > newest, entry.epoch - 1
        newest = max(newest, entry.epoch)
        # A lease that was given back leaves nothing to take over; and neither does one that has not written anything.
        if not is_first or before < 1 or (key, before) in world.given_back:
            continue
        last = [entry for entry in entries if entry.epoch == before][-1:]
        # Nothing follows an end, whose lease the table may refuse to free; a fork goes on later.
        if last and isinstance(last[0].events[-1], GaveUp | SagaEnded):
            continue
        if last and not isinstance(entry.events[0], Revived):
            yield f"the lease {before} of {saga} was never given back, and {entry.epoch} did not say so first"


def _orphans(world: World, logs: Logs) -> Iterator[str]:
    """A saga ends after its children: each has reported its end, or was left behind and asked to stop."""

    def written_at(saga: str, version: int) -> float:
        return world.written.get((str(SagaRef(TENANT, saga)), version), 0)

    def ended_at(saga: str) -> float:
        return written_at(saga, len(logs[saga]))

    def has_parent(saga: str) -> bool:
        """A saga that a function has started, and does not wait for, has none."""
        return any(isinstance(event, SagaStarted) and event.parent for event in logs[saga][0].events)

    for saga, entries in logs.items():
        if not entries or not isinstance(entries[-1].events[-1], SagaEnded):
            continue
        events = events_in(entries)
        told = {
            event.child: entry.version
            for entry in entries
            for event in entry.events
            if isinstance(event, ChildReported)
        }
        left = {child for event in events if isinstance(event, ChildrenAbandoned) for child in event.children}
        opened = [event.child for event in events if isinstance(event, ChildOpened)]
        yield from (f"{saga} did not wait for {child}" for child in opened if child not in {*told, *left})
        for child in (child for child in told if logs.get(child) and has_parent(child)):
            ends = (entry.version for entry in logs[child] if isinstance(entry.events[-1], SagaEnded))
            if (end := next(ends, 0)) == 0 or written_at(child, end) > written_at(saga, told[child]):
                yield f"{child} had not ended when {saga} recorded its end"
        for child in (child for child in opened if child not in told and logs.get(child)):
            last = logs[child][-1].events[-1]
            if not isinstance(last, SagaEnded):
                if not any(isinstance(event, CancelRequested) for event in events_in(logs[child])):
                    yield f"{child} lives on after its parent"
            elif last.status == "completed" and ended_at(child) > ended_at(saga):
                yield f"{child} was completed after its parent had ended"


def _unfinished(world: World) -> Iterator[str]:
    """Heads that are not as a finished or parked saga leaves them."""
    for head in world.log.heads():
        if head.owner:
            yield f"{head.ref} is still held"
        if head.status != "parked" and (head.due_at is not None or head.group != "done"):
            yield f"{head.ref} never came to its end: {head.status}"
        if head.start:
            yield f"{head.ref} still carries its start"


def _deeds(world: World) -> Iterator[str]:
    """What services did that honour no key, against what may happen only once."""
    # Lambda's clock goes on while a process stands still (docs/aws-ledger.md): with one that did not, all is open.
    is_sure = all(one.ended_at < one.process.lost_time_at for one in world.deeds)
    acts = sorted((act for deed in world.deeds for act in deed.acts), key=lambda act: act.at)
    for what, count in Counter(world.books.happened).items():
        pairs = combinations([act for act in acts if act.what == what], 2)
        if is_sure and not all(_is_excused(before, after) for before, after in pairs):
            yield f"an effect that may happen once has happened {count} times: {what}"
    actions = {tuple(map(str, what)) for what in world.books.done.values()}
    if len(actions) < len(world.books.done):
        yield "one action was carried out under two idempotency keys"
    by_key = defaultdict(list)
    for one in world.deeds:
        if not one.process.is_frozen:  # it cannot be fenced, see docs/effects.md
            by_key[one.tool, one.key].append(one)
    for (tool, key), deeds in by_key.items():
        deeds.sort(key=lambda one: one.began_at)
        if any(after.began_at < before.is_over_at for before, after in pairwise(deeds)):
            yield f"two calls of {tool} under one key overlapped: {key}"


def _is_excused(before: Act, after: Act) -> bool:
    """Whether nothing could keep both from acting (docs/effects.md): one was late, and the second had looked before the first."""
    return before.at > after.looked_at and (before.is_late or after.is_late)


def _unheard(world: World, logs: Logs) -> Iterator[str]:
    """What a caller was told has been accepted, and no log says."""
    for said in world.acknowledged:
        if said.what != "callback" and not any(
            _says(event, said) for event in events_in(logs.get(said.saga, []))
        ):
            yield f"{said.what} {said.name} {said.key} of {said.saga} is in no log"


def _unheard_callbacks(world: World, logs: Logs) -> Iterator[str]:
    for said in world.acknowledged:
        entries = logs.get(said.saga, [])
        text = unheard(entries, said) if said.what == "callback" else ""
        if text and not (said.payload.status == HEARTBEAT and _is_misdated(world, entries, said.key)):
            yield text


def _is_misdated(world: World, entries: list[Entry], callback: str) -> bool:
    """Whether the clock of the process that noted the handover had stood still: it dates it by as much too early."""
    by = [
        world.processes.get(entry.invocation)
        for entry in entries
        for event in entry.events
        if isinstance(event, CallbackOpened) and event.callback == callback
    ]
    # Lambda's clock goes on while a process stands still (docs/aws-ledger.md).
    return any(process is not None and process.lost_time_at < math.inf for process in by)


def _says(event: Event, said: Acknowledged) -> bool:
    if said.what == "start":
        return isinstance(event, SagaStarted)
    if said.what == "cancel":
        return isinstance(event, CancelRequested)
    if said.what == "claim":
        return isinstance(event, QuestionClaimed) and event.ask == said.key
    if said.what == "patch":
        return isinstance(event, GraphChanged) and event.key == said.key
    if said.what == "reply":
        asked = event.operations if isinstance(event, OperationsBegan) else ()
        return any(one.answers == f"{said.name}/{said.key}" for one in asked)
    if not isinstance(event, SignalReceived):
        return False
    if said.what == "answer":
        return (event.name, event.key) == (ANSWER, said.key) and event.payload.v in (said.payload, None)
    same = event.payload.ref or fingerprint(event.payload) == fingerprint(type(event.payload)(v=said.payload))
    return (event.name, event.key) == (said.name, said.key) and bool(same)


def _money(world: World, logs: Logs) -> Iterator[str]:
    """Accounts less logs: nothing where no invocation died or gave up, else at most what its tools had spent."""
    if not world.limits.user_day_budget_usd.strip("0."):
        return
    events = [event for entries in logs.values() for event in events_in(entries)]
    logged = sum(event.cost for event in events if isinstance(event, _COSTS))
    logged += sum(sum(event.assumed.values()) for event in events if isinstance(event, Revived))
    dead = [p for p in world.processes.values() if p.is_dead or p.is_frozen or p.has_failed]
    # What it settles may be lost twice, or once if it dies then; what stands still here goes on for a moment, as nothing frozen does.
    silenced = [p for p in world.processes.values() if p.unanswered > (not p.is_dead) or p.is_frozen]
    # One silence is enough where it lasts until the worker's time is over.
    lost = [p for p in world.processes.values() if p in silenced or (p.is_unsettled and p.has_failed)]
    most, least = _spent_in(dead), -_spent_in(lost)
    # An account that has not heard of an answer, or holds when its worker is gone, has the most that the request can have cost.
    unheard = {p.id for p in world.processes.values() if p.is_unsettled or (p in silenced and p.unanswered)}
    # So has that of a worker which had written nothing, where the next one dies before it has said what is assumed; it holds
    # also for requests before which the worker has died (docs/money.md, "What is not").
    wrote = {entry.invocation for entries in logs.values() for entry in entries}
    # Nor does one of an older release say so: it writes nothing.
    gone = [p for p in world.processes.values() if p in dead or p.home.is_old]
    untold = [one for one in gone[:-1] if one.id not in wrote]
    most += sum(max(one.holds, _asked_by(world, one.id)) for one in untold)
    most += sum(_asked_by(world, name) for name in unheard - {one.id for one in untold})
    # Nor has it heard what an answer to a worker before has cost less than it can have.
    most += sum(
        -event.cost
        for entries in logs.values()
        for entry in entries
        if entry.invocation in unheard
        for event in entry.events
        if isinstance(event, _COSTS) and event.cost < 0
    )
    # A worker that goes on takes back what lands late, unless the store was silent to it twice.
    most += sum(one.held_late for one in silenced)
    # Nor has an heir that had no answer about what the dead held: it assumes nothing.
    most += sum(one.holds for one in dead if short_name(one.id) in world.unexpired)
    # A worker whose clock has stood still answers as if its time were not over: it writes less than its heir has taken for spent.
    most += sum(one.freed for one in world.processes.values() if one.id not in wrote)
    # Their heirs have said what is assumed; what comes to be held afterwards, no log hears of.
    most += sum(held for (account, _), held in world.held_over.items() if account.user == USER)
    left = {account: world.budgets.expire(account, FOREVER).sums for account in world.budgets.spent()}
    accounts = world.budgets.spent()  # with what is spent because its holder is dead
    granted = max((event.budget for event in events if isinstance(event, Resumed)), default=0)
    for account, sums in left.items():
        spent, is_shared = accounts[account], account.user.startswith(PREFIX)
        if sums.reserved or sums.open:
            yield f"{account} is held for ever: {sums}"
        limit = micro_dollars([Decimal(world.limits.user_day_budget_usd)])
        if is_shared:
            del accounts[account]  # what its sagas spend is on their user's day, too
            limit = max(micro_dollars([Decimal(world.limits.saga_budget_usd)]), granted)
            if not limit:
                continue
        if world.keeps_to_what_it_declares and spent > limit + most:
            yield f"{account} has spent {spent}, the limit is {limit}, and the dead can have spent {most}"
    yield from of_tenants_days(world, most)
    billed = micro_dollars([part for one in world.asked for part in one.bill])
    if sum(accounts.values()) < billed + least:
        yield f"the account of {USER} has {sum(accounts.values())}, and its models have billed {billed}"
    if not least <= (more := sum(accounts.values()) - logged) <= most:
        yield f"the account of {USER} has {more} more than the logs; the dead can have spent {most}"


def _unapproved(world: World, logs: Logs) -> Iterator[str]:
    """Risky deeds that no person had approved, in exactly these words, before they were done."""
    approved: dict[str, float] = {}
    for saga, entries in logs.items():
        asks = {
            event.ask.id: event.ask.digest
            for event in events_in(entries)
            if isinstance(event, QuestionOpened)
        }
        for entry in entries:
            for event in entry.events:
                if isinstance(event, QuestionClosed) and event.action == APPROVE:
                    at = world.written.get((str(SagaRef(TENANT, saga)), entry.version), math.inf)
                    approved.setdefault(asks[event.ask], at)
    for act in (act for deed in world.deeds if deed.tool == "remit" for act in deed.acts):
        digest = digest_of("remit", {"amount": int(act.what.split()[1])})
        if approved.get(digest, math.inf) > act.at:
            yield f"it was done before a person approved it: {act.what}"


def _noise(world: World, logs: Logs) -> Iterator[str]:
    """Each take costs money: there are few that come to nothing."""
    for saga, entries in logs.items():
        head = world.log.read_head(SagaRef(TENANT, saga))
        allowed = ALLOWED_TAKES + len(entries) + 2 * len(world.faults)
        if head is not None and head.epoch > allowed:
            yield f"{saga} was taken {head.epoch} times for {len(entries)} entries"


def _asked_by(world: World, process: str) -> int:
    """The most that a worker's requests can have cost."""
    return micro_dollars([one.most for one in world.asked if one.process.id == process])


def _spent_in(processes: list[Process]) -> int:
    return sum(micro_dollars(spent) for process in processes for spent in process.spends)


def _untold(world: World, logs: Logs) -> Iterator[str]:
    """On-call is to be told of every parking of a saga that gets no further; while it lasts, its incident is open."""
    sent = {notice.key for notice in world.notices.said}
    found, _ = world.store.notice_record.listed(TENANT, status="open", limit=1_000)
    for saga, entries in logs.items():
        stuck, keys = 0, list[str]()
        for event in events_in(entries):
            stuck += isinstance(event, Parked) and event.code in STUCK
            if isinstance(event, NoticeDue) and event.notice.incident and event.notice.code in STUCK:
                keys.append(event.notice.key)
        if len(set(keys)) != stuck:
            yield f"{saga} was parked {stuck} times, and on-call was to be told {len(set(keys))} times"
        head = world.log.read_head(SagaRef(TENANT, saga))
        parked = [event for event in events_in(entries) if isinstance(event, Parked)][-1:]
        if head is None or head.status != "parked" or not keys or parked[0].code not in STUCK:
            continue
        if keys[-1] not in sent:
            if head.due_at is None or not world.faults:
                yield f"{saga} is parked, and on-call was not told"
        elif not any((incident.saga, incident.code) == (saga, parked[0].code) for incident in found):
            yield f"{saga} is parked, and no incident is open"


def _inbox(world: World, logs: Logs) -> Iterator[str]:
    """No row is left of a saga that has ended, however late its put came, nor a place that its person has for it."""
    rows = [row for _, row in world.store.questions.rows()]
    for row in rows:
        if any(isinstance(event, SagaEnded) for event in logs[row.saga][-1].events):
            yield f"{row.saga} has ended, and its question {row.ask} is listed"
    told = sum(row.told and row.to == f"user:{USER}" for row in rows)
    held = world.budgets.read(Account(TENANT, USER, PLACES_DAY)).held
    if held > told or (held != told and not world.faults):
        yield f"{USER} was told of {told} open questions and has {held} places taken"
