"""Commands that control sagas: cancel, signal, pause, resume, wake, retry, fork, rollback, send-events."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from baton.cli.deployment.sagas import given_labels
from baton.cli.terminal.completion import complete_workflows, saga_argument, saga_or_many
from baton.cli.terminal.shared import (
    Shared,
    json_option,
    key_option,
    print_answer,
    print_json,
    print_lines,
    progress,
)
from baton.cli.terminal.values import Duration, Moment, Whole, read_pairs, read_value
from baton.client.exits import NO, REFUSED, CommandFailed
from baton.words.text import counted, plain

if TYPE_CHECKING:
    from baton.client.api import Api

_MOST_PASSES = 10
_MATCH = ("code", "since", "labels")
_SENT = ("workflow", "tenant", "code", "since", "workflow_version", "to", "map", "from")
_DONE = {
    "migrate": "migrated",
    "pause": "paused",
    "resume": "resumed",
    "cancel": "asked to cancel",
    "retry": "retried",
}


def many_options(*more: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of an action on many sagas; `more`: of `_MATCH`."""
    filters = {
        "code": click.option("--code", metavar="CODE", help="Only those that failed or are parked with it."),
        "since": click.option("--since", type=Moment(), help="Only those that changed since: 2h, or a time."),
        "labels": click.option(
            "--label", "labels", metavar="NAME=VALUE", multiple=True, help="Only those with this label."
        ),
    }
    options = (
        click.option(
            *("--workflow", "workflow"),
            metavar="NAME",
            shell_complete=complete_workflows,
            help="In place of SAGA: all sagas of this workflow.",
        ),
        click.option("--tenant", is_flag=True, help="In place of SAGA: all sagas."),
        *(filters[name] for name in more),
        click.option("--dry-run", is_flag=True, help="Only say how many it would be."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask before many are changed."),
    )

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _is_one(saga: str | None, many: Mapping[str, Any]) -> bool:
    """Return true if the command is for one saga. Raises `click.UsageError` unless it says of which."""
    given = [name for name in ("workflow", "tenant") if many[name]]
    if bool(saga) + len(given) != 1:
        raise click.UsageError("which sagas? give a SAGA, --workflow NAME, or --tenant")
    if saga and any(many.get(name) for name in (*_MATCH, "dry_run")):
        raise click.UsageError("--code, --since, --label and --dry-run go with --workflow or --tenant")
    return bool(saga)


def steer_many(
    shared: Shared,
    do: str,
    many: Mapping[str, Any],
    more: Mapping[str, Any],
    key: str | None,
    *,
    as_json: bool,
) -> None:
    """Count the matching sagas, ask the person, then send requests until a pass changes nothing."""
    wanted = {name: many[name] for name in _SENT if many.get(name)}
    if labels := given_labels(many.get("labels") or ()):
        wanted["labels"] = labels
    if many["dry_run"] or not (many["yes"] or as_json):
        found = shared.call(lambda api: _pass(api, do, {**wanted, "dry_run": True}, key))
        if many["dry_run"] and as_json:
            print_json(found)
            return
        print_lines(_count_lines(found))
        if many["dry_run"]:
            return
        begins = ", and those that begin from now on" if do == "pause" else ""
        number = found["matched"] - len(found["refused"])
        click.confirm(f"{do.capitalize()} {counted(number, 'saga')}{begins}?", abort=True, err=True)
    done = shared.call(lambda api: _passes(api, do, {**wanted, **more}, key or str(uuid.uuid4())))
    if as_json:
        print_json(done)
    else:
        click.echo(f"{counted(done['changed'], 'saga')} {_DONE[do]}")
        for one in done["refused"]:
            click.echo(f"{one['id']}  {plain(one['why'])}", err=True)
    if done["refused"]:
        raise SystemExit(REFUSED)


def _count_lines(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each workflow and code, and for each saga that would be refused."""
    lines = [
        "  ".join([f"{one['sagas']:>7}", one["workflow"], *([one["code"]] if one["code"] else [])])
        for one in found["counts"]
    ]
    lines += [f"{one['id']}  not this: {plain(one['why'])}" for one in found["refused"]]
    return lines or ["no saga matches"]


async def _passes(api: Api, do: str, wanted: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Repeat the action until a pass changes nothing: a list may miss a saga that moves while it is read."""
    total = await _pass(api, do, wanted, key)
    changed = total["changed"] if do != "retry" else 0
    for _ in range(_MOST_PASSES):
        if not changed:
            break
        again = await _pass(api, do, wanted, key)
        changed = again["changed"]
        total["changed"] += changed
    return total


async def _pass(api: Api, do: str, wanted: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """Return the sums of all requests of one pass."""
    counts, refused = Counter[tuple[str, str | None]](), list[Any]()
    total: dict[str, Any] = {"matched": 0, "changed": 0}
    cursor: str | None = ""
    with progress() as say:
        while cursor is not None:
            page = await api.steer(do, {**wanted, "cursor": cursor}, key if do == "retry" else None)
            for name in total:
                total[name] += page[name]
            counts.update({(one["workflow"], one["code"]): one["sagas"] for one in page["counts"]})
            refused += page["refused"]
            cursor = page["next"]
            say(f"{total['matched']:,} sagas")
    rows = [
        {"workflow": workflow, "code": code, "sagas": sagas}
        for (workflow, code), sagas in sorted(counts.items(), key=str)
    ]
    return {**total, "counts": rows, "refused": refused}


@click.command(short_help="Cancel a saga, or many.")
@saga_or_many
@click.option("--reason", default="", help="Reason, which is written into the log.")
@click.option(
    "--forced", is_flag=True, help="Interrupt running steps at once instead of letting them finish."
)
@click.option("--grace", type=Duration(), help="Time that running steps may go on, e.g. 10s.")
@click.option("--undo", is_flag=True, help="Take back what the saga has done before it ends.")
@many_options("since", "labels")
@json_option
@click.pass_obj
def cancel(
    shared: Shared,
    /,
    saga: str | None,
    reason: str,
    forced: bool,
    grace: float | None,
    undo: bool,
    as_json: bool,
    **many: Any,
) -> None:
    """Cancel a saga: nothing new starts, running steps may finish. Many: --workflow or --tenant."""
    if forced and grace:
        raise click.UsageError("--forced leaves no time for --grace: give one of them")
    mode = "forced" if forced else "graceful"
    if not _is_one(saga, many):
        if undo or grace:
            raise click.UsageError("--undo and --grace are for one saga")
        steer_many(shared, "cancel", many, {"reason": reason, "mode": mode}, None, as_json=as_json)
        return
    assert saga is not None, "it was looked at"
    answer = shared.call(lambda api: api.cancel(saga, reason, mode, grace, undo=undo))
    more = " and to undo what it has done" if undo else ""
    print_answer(answer, as_json, f"{answer['id']}  asked to cancel ({mode}){more}")


@click.command()
@saga_argument
@click.argument("name")
@click.option(
    "--payload", metavar="JSON", help="Payload of the signal: JSON, @FILE, or - for standard input."
)
@click.option(
    "--fail",
    "code",
    metavar="CODE",
    help="Code of a failure, in place of a payload: the event that the saga waits for has failed.",
)
@click.option("--message", metavar="TEXT", help="With --fail: reason for people.")
@click.option(
    "--answer", "wait_s", type=Duration(), help="Wait so long for the function's answer, and print it."
)
@key_option
@json_option
@click.pass_obj
def signal(
    shared: Shared,
    saga: str,
    name: str,
    payload: str | None,
    code: str | None,
    message: str | None,
    wait_s: float | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Send a signal to a saga that waits for it, or soon will."""
    if code is not None and payload is not None:
        raise click.UsageError("a signal brings --payload or --fail, not both: give one of them")
    if message is not None and code is None:
        raise click.UsageError("--message goes with --fail CODE")
    if wait_s is not None and code is not None:
        raise click.UsageError("no function answers a failure: --answer goes with --payload")
    value = read_value(payload, "--payload")
    if wait_s is not None:
        _print_reply(shared.call(lambda api: api.update(saga, name, value, key, wait_s)), name, as_json)
        return
    failure = None if code is None else {"code": code, "message": message or ""}
    answer = shared.call(lambda api: api.signal(saga, name, value, key, failure))
    said = "" if code is None else f", which fails with {code}"
    print_answer(answer, as_json, f"{answer['id']}  was sent {name}{said}")


@click.command()
@saga_argument
@click.argument("text", required=False)
@click.option("--to", default="", metavar="NODE", help="Agent, if several hear different signals.")
@click.option("--end", is_flag=True, help="End the conversation: the agent's last answer is its output.")
@key_option
@json_option
@click.pass_obj
def say(
    shared: Shared, saga: str, text: str | None, to: str, end: bool, key: str | None, as_json: bool
) -> None:
    """Send a message to an agent of a saga."""
    if end == bool(text):
        raise click.UsageError("write the text of the message, or --end")
    answer = shared.call(lambda api: api.say(saga, text or "", key, to=to, ends=end))
    done = "was asked to end its conversation" if end else "was sent the message"
    print_answer(answer, as_json, f"{answer['id']}  {done}")


_NO_ANSWER = {
    "waiting": "`{name}` waits to be taken, and is not answered yet",
    "taken": "`{name}` was taken, and is not answered yet",
    "lost": "`{name}` was lost: no wait was open for it",
    "ended": "the saga has ended as {status}, and has not answered `{name}`",
}


def _print_reply(sent: Mapping[str, Any], name: str, as_json: bool) -> None:
    """Print the answer of a function to a signal; end with status 1 if there is none."""
    if sent["outcome"] == "answered":
        print_json(sent if as_json else sent["answer"])
        return
    if as_json:
        print_json(sent)
        raise click.exceptions.Exit(NO)
    why = _NO_ANSWER[sent["outcome"]].format(name=name, status=sent["status"])
    is_open = sent["outcome"] in ("waiting", "taken")
    raise CommandFailed(
        NO, why, *([f"Ask for it with the same --payload and --key {sent['key']}"] if is_open else [])
    )


@click.command("pause", short_help="Hold a saga, a workflow or all back until they are resumed.")
@saga_or_many
@click.option("--reason", default="", help="Reason, which is written into the log.")
@many_options()
@json_option
@click.pass_obj
def pause_saga(shared: Shared, /, saga: str | None, reason: str, as_json: bool, **many: Any) -> None:
    """Pause a saga: it begins nothing, running steps end, and its time stands still. Its children go on.

    --workflow and --tenant pause the sagas that have not ended, and those that begin from now on.
    """
    if not _is_one(saga, many):
        steer_many(shared, "pause", many, {"reason": reason}, None, as_json=as_json)
        return
    assert saga is not None, "it was looked at"
    answer = shared.call(lambda api: api.pause(saga, reason))
    text = "is paused" if answer["changed"] else "was paused before"
    print_answer(answer, as_json, f"{answer['id']}  {text}")


@click.command(short_help="Have a worker look at a saga now.")
@saga_argument
@json_option
@click.pass_obj
def wake(shared: Shared, saga: str, as_json: bool) -> None:
    """Have a worker look at a saga now, whatever time it is due at. A worker decides nothing else than it
    would at that time.
    """
    answer = shared.call(lambda api: api.wake(saga))
    text = "a worker will look at it now" if answer["changed"] else "a worker has it"
    print_answer(answer, as_json, f"{answer['id']}  {text}")


@click.command("retry", short_help="Try a failed saga again from its failed step, or many.")
@saga_or_many
@many_options(*_MATCH)
@click.option(
    "--workflow-version",
    metavar="VERSION",
    help="With --workflow: the version, or tag, of the workflow with which they go on.",
)
@key_option
@json_option
@click.pass_obj
def retry_saga(
    shared: Shared,
    /,
    saga: str | None,
    workflow_version: str | None,
    key: str | None,
    as_json: bool,
    **many: Any,
) -> None:
    """Continue a failed saga in a new branch from the last entry before its failed step began. What was done
    before stays done.

    --workflow and --tenant first count the failed sagas by workflow and code, and ask. If the command is
    interrupted, the same --key retries none twice.
    """
    if workflow_version and not many["workflow"]:
        raise click.UsageError("--workflow-version goes with --workflow; of one saga see `baton fork`")
    if not _is_one(saga, many):
        key, many["workflow_version"] = key or str(uuid.uuid4()), workflow_version
        if not as_json and not many["dry_run"]:
            click.echo(f"If this is interrupted, repeat it with --key {key}", err=True)
        steer_many(shared, "retry", many, {}, key, as_json=as_json)
        return
    assert saga is not None, "it was looked at"
    answer = shared.call(lambda api: api.retry(saga, key))
    text = "tries again from its failed step" if answer["changed"] else "was retried before with this key"
    print_answer(answer, as_json, f"{answer['id']}  {text}")


@click.command(short_help="Let a paused or parked saga go on, or many.")
@saga_or_many
@click.option(
    "--budget",
    metavar="DOLLARS",
    help="Dollars that the saga may spend in all. Without it, a saga parked by its budget may spend as much again.",
)
@many_options(*_MATCH)
@json_option
@click.pass_obj
def resume(shared: Shared, /, saga: str | None, budget: str | None, as_json: bool, **many: Any) -> None:
    """Resume a parked or paused saga.

    --workflow and --tenant end that pause: sagas stay paused that were paused one by one, and stay parked.
    With --code, sagas that are parked for that reason try again.
    """
    if not _is_one(saga, many):
        if budget:
            raise click.UsageError("--budget is for one saga")
        steer_many(shared, "resume", many, {}, None, as_json=as_json)
        return
    assert saga is not None, "it was looked at"
    answer = shared.call(lambda api: api.resume(saga, budget))
    text = "goes on" if answer["changed"] else f"was not held back: it is {answer['status']}"
    print_answer(answer, as_json, f"{answer['id']}  {text}")


@click.command(short_help="Find what is wrong with sagas, and repair it.")
@click.argument("saga", required=False)
@click.option("--repair", is_flag=True, help="Repair what is found, as far as no person has to decide.")
@json_option
@click.pass_obj
def doctor(shared: Shared, saga: str | None, repair: bool, as_json: bool) -> None:
    """Compare head, log and graph of SAGA, or of all open sagas, and list what is wrong.

    The status is 1 if findings are left.
    """
    found: list[dict[str, Any]] = []
    examined = 0

    async def run(api: Api) -> None:
        nonlocal examined
        cursor: str | None = ""
        while cursor is not None:
            page = await api.diagnoses(repair=repair, cursor=cursor)
            examined += page["examined"]
            found.extend(page["sagas"])
            cursor = page["next"]

    if saga is None:
        shared.call(run)
    else:
        found, examined = [shared.call(lambda api: api.diagnosis(saga, repair=repair))], 1
    left = sum(len(one["findings"]) for one in found)
    done = sum(len(one["repaired"]) for one in found)
    if as_json:
        print_json({"examined": examined, "sagas": found})
    else:
        for one in found:
            _print_findings(one, is_asked=repair)
        click.echo(
            f"{examined} examined, {done} repaired, {left} {'finding is' if left == 1 else 'findings are'} left"
        )
    if left:
        raise click.exceptions.Exit(NO)


def _print_findings(one: dict[str, Any], *, is_asked: bool) -> None:
    from baton.words.text import plain

    for finding in one["repaired"]:
        click.echo(f"{one['id']}  repaired {finding['code']}: {plain(finding['message'])}")
    for finding in one["findings"]:
        click.echo(f"{one['id']}  {finding['code']}: {plain(finding['message'])}")
        hint = " (--repair)" if finding["repairable"] and not is_asked else ""
        click.echo(f"    {plain(finding['remedy'])}{hint}")


@click.command(short_help="Fold a saga's log again, and decide again.")
@saga_argument
@json_option
@click.pass_obj
def replay(shared: Shared, saga: str, as_json: bool) -> None:
    """Fold the log of SAGA again from its first entry, and decide again what its workers decided.

    Prints the first difference from log, snapshot or head; the status is 1 if there is one. No step is run.
    """
    from baton.words.text import plain

    answer = shared.call(lambda api: api.replay(saga))
    difference = answer["divergence"]
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{answer['id']}  {answer['folded']} entries folded, {answer['decided']} decided again")
    if difference is None:
        return
    if not as_json:
        click.echo(f"the {difference['at']} differs at version {difference['version']}")
        for name in ("stored", "replayed"):
            for line in difference[name]:
                click.echo(f"  {name}: {plain(line)}")
    raise click.exceptions.Exit(NO)


@click.command(short_help="Go on from an earlier state, in a new branch.")
@saga_argument
@click.argument("version", type=Whole(min=1), required=False)
@click.option(
    "--before", metavar="STEP", help="In place of VERSION: the version before this step began; it runs again."
)
@click.option(
    "--stable", is_flag=True, help="In place of VERSION: the last version at which nothing had failed."
)
@click.option(
    "--input", "given", metavar="JSON", help="Input with which the saga goes on; @FILE or - reads it."
)
@click.option(
    "--output",
    "outputs",
    metavar="STEP=JSON",
    multiple=True,
    help="Output of a step that is over, with which the saga goes on.",
)
@click.option(
    "--workflow",
    metavar="NAME@VERSION",
    default="",
    shell_complete=complete_workflows,
    help="Version of its workflow with which the saga goes on.",
)
@click.option(
    "--repeat", metavar="STEP", multiple=True, help="Step that acts again, with a new idempotency key."
)
@click.option("--new", is_flag=True, help="Go on as a new saga, and leave SAGA as it is.")
@click.option("--leave", is_flag=True, help="Leave effects as they are that the new branch may repeat.")
@click.option("--undo", is_flag=True, help="Roll back to that version first, and fork once that is over.")
@click.option("--reason", default="", help="Reason, which is written into the log.")
@click.option("--dry-run", is_flag=True, help="Only say what the fork leaves behind.")
@key_option
@json_option
@click.pass_obj
def fork(
    shared: Shared,
    saga: str,
    version: int | None,
    before: str | None,
    stable: bool,
    given: str | None,
    outputs: tuple[str, ...],
    workflow: str,
    repeat: tuple[str, ...],
    new: bool,
    leave: bool,
    undo: bool,
    reason: str,
    dry_run: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Continue a saga from VERSION of its log, a number of `baton events`, in a new branch.
    The earlier branch is kept.
    """
    if [version is not None, before is not None, stable].count(True) != 1:
        raise click.UsageError("give one of VERSION, --before STEP and --stable")
    body: dict[str, Any] = (
        {"version": version} if version else {"before": before} if before else {"at": "stable"}
    )
    body |= {"reason": reason} | ({} if given is None else {"input": read_value(given, "--input")})
    body |= {"outputs": read_pairs(outputs, "--output")} if outputs else {}
    body |= ({"workflow": workflow} if workflow else {}) | ({"as": "saga"} if new else {})
    body |= ({"repeat": list(repeat)} if repeat else {}) | ({"leave": True} if leave else {})
    if dry_run:
        answer = shared.call(lambda api: api.fork(saga, dry_run=True, **body))
        print_json(answer) if as_json else _show_left(answer["plan"])
        return
    answer = shared.call(lambda api: _fork(api, saga, body, key, undo=undo))
    cut = f"version {answer['plan']['cut']}" if answer.get("plan") else "there"
    text = f"goes on from {cut}" if answer["changed"] else "was forked before with this key"
    if not as_json and answer.get("plan"):
        _show_left(answer["plan"])
    print_answer(answer, as_json, f"{answer['id']}  {text}")


async def _fork(api: Api, saga: str, body: dict[str, Any], key: str | None, *, undo: bool) -> dict[str, Any]:
    """Fork a saga; with `undo`, once it is rolled back to the version at which the fork begins."""
    from baton.cli.terminal.watching import until_over

    if undo:
        plan = (await api.fork(saga, dry_run=True, **body))["plan"]
        if plan["left"] or plan["more"]:
            back = {"to": plan["cut"], "reason": body["reason"]}
            await api.rollback(saga, back, None if key is None else f"{key}/undo"[:255])
            ended = await until_over(api, saga)
            if ended["status"] != "rolled_back":
                raise CommandFailed(
                    NO, f"{saga} is {ended['status']}: not all of it is undone, and it is not forked"
                )
        body = {name: value for name, value in body.items() if name not in ("before", "at")}
        body["version"] = plan["cut"]
    return await api.fork(saga, key=key, **body)


_KEYS = {
    "kept": "is not done again: its key stays",
    "new": "is done again",
    "unsure": "stands, and may be done again",
}


def _show_left(plan: Mapping[str, Any]) -> None:
    """Print what a fork leaves behind."""
    for one in plan["left"]:
        words = [
            *(["payment"] if one["payment"] else []),
            *(["outcome unknown"] if one["doubtful"] else []),
            _KEYS[one["key"]],
            f"undone by {one['by']}" if one["by"] else "irreversible",
        ]
        click.echo(f"{one['version']:>6}  {one['step']}  {', '.join(words)}")
    if plan["more"]:
        click.echo(f"     … and {counted(plan['more'], 'effect')} more")
    if not plan["left"]:
        click.echo(f"        nothing was done behind version {plan['cut']} that a fork would leave")


@click.command(short_help="Undo what a saga has done.")
@saga_argument
@click.option(
    "--to",
    "back_to",
    metavar="VERSION|STEP",
    default="0",
    help="Version of its log, or step, up to which its work stays.",
)
@click.option("--reason", default="", help="Reason, which is written into the log.")
@click.option("--parallel", is_flag=True, help="Undo steps side by side instead of the last first.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before it is done.")
@click.option("--dry-run", is_flag=True, help="Only say what would be undone.")
@key_option
@json_option
@click.pass_obj
def rollback(
    shared: Shared,
    saga: str,
    back_to: str,
    reason: str,
    parallel: bool,
    yes: bool,
    dry_run: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Undo the steps of a saga, the last one first, whether it runs or has ended."""
    to = int(back_to) if back_to.isdecimal() else back_to
    body = {"to": to, "reason": reason, "parallel": parallel}
    if dry_run or not (yes or as_json):
        answer = shared.call(lambda api: api.rollback(saga, {**body, "dry_run": True}))
        if as_json:
            print_json(answer)
            return
        _show_plan(answer)
        if dry_run or not click.confirm("Undo this?", err=True):
            return
    answer = shared.call(lambda api: api.rollback(saga, body, key))
    print_answer(answer, as_json, f"{answer['id']}  undoes {counted(answer['plan']['undoable'], 'step')}")


def _show_plan(answer: Mapping[str, Any]) -> None:
    plan = answer["plan"]
    for one in plan["steps"]:
        by = f"undone by {one['by']}" if one["by"] else "stays: nothing undoes it"
        by = "a person is asked whether it has happened" if one["doubtful"] else by
        click.echo(f"{one['version']:>6}  {one['step']}  {by}")
    if not plan["steps"]:
        click.echo(f"{answer['id']}  nothing is left to undo: the saga is {answer['status']}")
        return
    if plan["parent"]:
        click.echo(
            f"        {plan['parent']} has started it, is not told, and stays as it is: to undo both, roll that back"
        )
    if (more := plan["undoable"] + plan["doubtful"] + plan["lasting"] - len(plan["steps"])) > 0:
        click.echo(f"     … and {counted(more, 'step')} more")
    undone = counted(plan["undoable"], "step is undone", "steps are undone")
    asked = f", {counted(plan['doubtful'], 'is asked about', 'are asked about')}" if plan["doubtful"] else ""
    click.echo(f"{answer['id']}  {undone}, {counted(plan['lasting'], 'stays', 'stay')}{asked}")


@click.command("send-events", short_help="Send events from outside to the rules of workflows.")
@click.argument("events", metavar="EVENTS")
@json_option
@click.pass_obj
def send_events(shared: Shared, events: str, as_json: bool) -> None:
    """Send events (CloudEvents 1.0) to the rules of registered workflows, and show the result of each rule.

    EVENTS is a file (JSON or YAML), JSON itself, or - for standard input: an event, or a list of up to 100. A
    repeated event has no further effect. The `message` of a dead letter of an EventBridge event, and that
    event itself, are accepted as the event that they contain.
    """
    value = read_value(events if events[:1] in ("{", "[", "-", "@") else f"@{events}", "EVENTS")
    sent = [_carried(one) for one in value] if isinstance(value, list) else _carried(value)
    answer = shared.call(lambda api: api.send_events(sent))
    if as_json:
        print_json(answer)
    else:
        print_lines(line for event in answer["events"] for line in _lines(event))


def _carried(value: Any) -> Any:
    """Return an event without the envelopes of EventBridge and of Lambda's failure destination."""
    from baton.web.bodies.events import cloud_event

    entry = value.get("requestPayload", value) if isinstance(value, dict) else value
    return cloud_event(entry) if isinstance(entry, dict) and "detail-type" in entry else value


def _lines(event: dict[str, Any]) -> list[str]:
    named = event["id"] or "an event without id"
    if not event["outcomes"]:
        return [f"{named}  no rule is for it"]
    return [f"{named}  {_line(one)}" for one in event["outcomes"]]


def _line(one: dict[str, Any]) -> str:
    parts = [one["workflow"], one["signal"], one["did"].replace("_", " "), one["saga"], one["why"]]
    return "  ".join(part for part in parts if part)
