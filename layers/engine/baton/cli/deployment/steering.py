"""Commands that control sagas: cancel, signal, resume, fork, rollback, send-events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from baton.cli.terminal.completion import saga_argument
from baton.cli.terminal.shared import Shared, json_option, key_option, print_answer, print_json, print_lines
from baton.cli.terminal.values import Duration, Whole, read_value
from baton.client.exits import NO, CommandFailed
from baton.words.text import counted

if TYPE_CHECKING:
    from baton.client.api import Api


@click.command(short_help="Cancel a saga.")
@saga_argument
@click.option("--reason", default="", help="Reason, which is written into the log.")
@click.option(
    "--forced", is_flag=True, help="Interrupt running steps at once instead of letting them finish."
)
@click.option("--grace", type=Duration(), help="Time that running steps may go on, e.g. 10s.")
@click.option("--undo", is_flag=True, help="Take back what the saga has done before it ends.")
@json_option
@click.pass_obj
def cancel(
    shared: Shared, saga: str, reason: str, forced: bool, grace: float | None, undo: bool, as_json: bool
) -> None:
    """Cancel a saga: nothing new starts, running steps may finish."""
    if forced and grace:
        raise click.UsageError("--forced leaves no time for --grace: give one of them")
    mode = "forced" if forced else "graceful"
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


@click.command(short_help="Let a parked saga try again, or repair one.")
@saga_argument
@click.option(
    "--budget",
    metavar="DOLLARS",
    help="Dollars that the saga may spend in all. Without it, a saga parked by its budget may spend as much again.",
)
@json_option
@click.pass_obj
def resume(shared: Shared, saga: str, budget: str | None, as_json: bool) -> None:
    """Resume a parked saga, or repair one that does not go on by itself."""
    answer = shared.call(lambda api: api.resume(saga, budget))
    print_answer(answer, as_json, f"{answer['id']}  tries again")


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
@click.argument("version", type=Whole(min=1))
@click.option("--reason", default="", help="Reason, which is written into the log.")
@key_option
@json_option
@click.pass_obj
def fork(shared: Shared, saga: str, version: int, reason: str, key: str | None, as_json: bool) -> None:
    """Continue a saga from VERSION of its log, a number of `baton events`, in a new branch.
    The earlier branch is kept.
    """
    answer = shared.call(lambda api: api.fork(saga, version, reason, key))
    print_answer(answer, as_json, f"{answer['id']}  goes on from version {version}")


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
