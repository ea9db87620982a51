"""Commands of a person who is asked: inbox, answer, claim, remind, incidents, acknowledge, resolve.

Commands that control a saga without questions are in steering.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from baton.cli.terminal.completion import ANSWERS, complete_actions, complete_sagas, saga_argument
from baton.cli.terminal.shared import (
    Listing,
    Shared,
    gather_pages,
    json_option,
    key_option,
    list_options,
    print_answer,
    print_json,
    print_lines,
    print_more,
    terminal_width,
)
from baton.cli.terminal.values import read_value
from baton.client.connection import command_line
from baton.client.exits import REFUSED, USAGE, CommandFailed
from baton.words.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from baton.client.api import Api


@click.command(short_help="Answer a question of a saga.", options_metavar="[OPTIONS]")
@saga_argument
@click.argument("ask", metavar="[ASK]", required=False, shell_complete=complete_actions)
@click.argument("action", metavar="ANSWER", required=False, shell_complete=complete_actions)
@click.option("--with", "given", metavar="JSON", help="With retry: arguments to try again with, an object.")
@click.option("--output", metavar="JSON", help="With use: what to take in place of the step's output.")
@click.option("--data", metavar="JSON", help="With submit: the data that the question asks for.")
@click.option("--comment", metavar="TEXT", help="Comment, which is kept with the answer.")
@key_option
@json_option
@click.pass_obj
def answer(
    shared: Shared,
    saga: str,
    ask: str | None,
    action: str | None,
    given: str | None,
    output: str | None,
    data: str | None,
    comment: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Answer a question of a saga.

    About a failed step: retry, use (an output in its place) or fail. To a question of a node: approve or
    reject, submit (--data), done, or one of the choices that it offers.

    ASK is the question's id, as shown by `baton show`; it can be omitted while only one question is open, in
    the saga or, if it asks nothing itself, in its children.
    Without an open question, the one that was answered last is meant: the same answer again changes nothing.
    `baton show` also lists the possible answers, who may answer, and which arguments --with may change.
    """
    if action is None:
        ask, action = None, ask
    if action is None:
        raise click.UsageError(f"say what to answer, for example one of {', '.join(ANSWERS)}")
    body: dict[str, Any] = {"action": action}
    for name, option, value in (
        ("arguments", "--with", given),
        ("output", "--output", output),
        ("data", "--data", data),
    ):
        if value is not None:
            body[name] = read_value(value, option)
    if action == "use" and output is None:
        raise click.UsageError("`use` needs what to take in place of the step's output: --output JSON")
    if comment is not None:
        body["comment"] = comment

    async def run(api: Api) -> dict[str, Any]:
        asks, body["ask"] = (saga, ask) if ask else await _only_question(api, saga, or_answered=True)
        return await api.answer(asks, body, key)

    answered = shared.call(run)
    is_new = answered.get("changed", True)
    said = f"was answered {body['ask']}" if is_new else f"{body['ask']} has this answer already"
    print_answer(answered, as_json, f"{answered['id']}  {said}: {action}")


@click.command(short_help="Make a question of a group your own.")
@saga_argument
@click.argument("ask", metavar="[ASK]", required=False)
@click.option("--release", is_flag=True, help="Give it back, to all whom it is for.")
@json_option
@click.pass_obj
def claim(shared: Shared, saga: str, ask: str | None, release: bool, as_json: bool) -> None:
    """Claim a question of a group or a role: the others may no longer answer it.

    ASK is the question's id; it can be omitted while only one question is open. The user who has claimed it,
    or an operator, releases it with --release.
    """
    asked = []

    async def run(api: Api) -> dict[str, Any]:
        asks, one = (saga, ask) if ask else await _only_question(api, saga)
        asked.append(one)
        return await api.claim(asks, one, release=release)

    claimed = shared.call(run)
    if release:
        said = "released {}" if claimed.get("changed", True) else "nothing to release: no user has claimed {}"
    else:
        said = "claimed {}" if claimed.get("changed", True) else "{} is yours already"
    print_answer(claimed, as_json, f"{claimed['id']}  {said.format(asked[0])}")


@click.command(short_help="Have people told again of a question.")
@saga_argument
@click.argument("ask", metavar="[ASK]", required=False)
@json_option
@click.pass_obj
def remind(shared: Shared, saga: str, ask: str | None, as_json: bool) -> None:
    """Remind the audience of a question, at most once in five minutes.

    ASK is the question's id; it can be omitted while only one question is open.
    """
    asked = []

    async def run(api: Api) -> dict[str, Any]:
        asks, one = (saga, ask) if ask else await _only_question(api, saga)
        asked.append(one)
        return await api.remind(asks, one)

    reminded = shared.call(run)
    print_answer(reminded, as_json, f"{reminded['id']}  reminds of {asked[0]}")


_MOST_CHILDREN = 100


async def _only_question(api: Api, saga: str, *, or_answered: bool = False) -> tuple[str, str]:
    """Return the saga and the id of the only open question, of the saga itself or else of its open children.

    Without one, if `or_answered`, the last answered of the saga. Raises `CommandFailed`.
    """
    found = await api.show(saga)
    asked = [(saga, str(question["id"])) for question in found.get("questions") or ()]
    if not asked:
        asked = await _questions_below(api, found)
    if len(asked) == 1:
        return asked[0]
    if not asked:
        from baton.core.log.state import FINISHED

        if or_answered and (last := await _last_answered(api, saga)):
            return saga, last
        ended = f": it is {found['status']}" if found.get("status") in FINISHED else ""
        raise CommandFailed(REFUSED, f"{saga} asks nothing{ended}")
    if asked[0][0] == saga:
        raise CommandFailed(
            USAGE, f"{saga} asks {len(asked)} questions: say which", *(ask for _, ask in asked)
        )
    said = [f"{one} {shlex.quote(ask)}" for one, ask in asked]
    raise CommandFailed(USAGE, f"children of {saga} ask {len(asked)} questions: name the child too", *said)


async def _questions_below(api: Api, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the open questions of the open children of a saga and of theirs, by their sagas."""
    asked: list[tuple[str, str]] = []
    todo = _open_children(found)
    for child in todo:
        shown = await api.show(child)
        asked += [(child, str(question["id"])) for question in shown.get("questions") or ()]
        todo += _open_children(shown)[: _MOST_CHILDREN - len(todo)]
    return asked


def _open_children(found: Mapping[str, Any]) -> list[str]:
    return [str(active["saga"]) for active in found.get("active") or () if active.get("saga")][
        :_MOST_CHILDREN
    ]


async def _last_answered(api: Api, saga: str) -> str:
    """Return the id of the question of the last answer in the log, empty without one."""
    from baton.core.log.questions import question_of_key
    from baton.core.log.state import ANSWER

    last = ""
    async for entry in api.events(saga):
        for event in entry["events"]:
            if event["kind"] == "signal_received" and event.get("name") == ANSWER:
                last = question_of_key(event["key"])
    return last


@click.command(short_help="List the questions that are for you.")
@click.option(
    "--saga", shell_complete=complete_sagas, help="Only the questions of this saga, whomever they are for."
)
@click.option("--answered", is_flag=True, help="With --saga: its closed questions with their answers.")
@list_options("questions")
@json_option
@click.pass_obj
def inbox(shared: Shared, saga: str | None, answered: bool, listing: Listing, as_json: bool) -> None:
    """List the open questions for you, your groups and your roles, ordered by expiry, earliest first.

    With --json: {"questions": […], "next": CURSOR or null}.
    """
    if answered and saga is None:
        raise click.UsageError("--answered is for the questions of one saga: add --saga")

    async def run(api: Api) -> tuple[list[dict[str, Any]], str | None]:
        if saga is not None:
            return await api.questions_of(saga, listing.limit, answered=answered), None
        return await gather_pages(api.questions(listing.most, listing.cursor), "question")

    found, after = shared.call(run)
    if as_json:
        print_json({"questions": found, "next": after})
        return
    from baton.cli.text.tables import answer_rows, question_rows

    if answered:
        print_lines(answer_rows(found, terminal_width()))
        return
    print_lines(question_rows(found, terminal_width()))
    if len(found) == 1:
        from baton.cli.text.render import answers_to

        which = f"{found[0]['saga']} {shlex.quote(found[0]['id'])}"
        click.echo(plain("Answer with: " + command_line(f"answer {which} {answers_to(found[0])}")), err=True)
    elif found:
        click.echo("Answer with: " + command_line("answer SAGA ASK ANSWER"), err=True)
        click.echo("Show the open questions: " + command_line("show SAGA"), err=True)
    else:
        click.echo("no question is open" + (" for you" if saga is None else ""), err=True)
    print_more(after)


@click.command(short_help="List what went wrong and needs a person, or show one.")
@click.argument("incident", required=False)
@click.option(
    "--status",
    type=click.Choice(["open", "unacknowledged", "resolved", "all"]),
    default="open",
    show_default=True,
    help="Only these.",
)
@list_options("incidents")
@json_option
@click.pass_obj
def incidents(shared: Shared, incident: str | None, status: str, listing: Listing, as_json: bool) -> None:
    """List incidents, newest first, or show one. With --json: {"incidents": […], "next": CURSOR or null}, or
    the one.
    """
    if incident is not None:
        found_one = shared.call(lambda api: api.incident(incident))
        if as_json:
            print_json(found_one)
        else:
            _show_incident(found_one)
        return
    filters = {} if status == "all" else {"status": status}
    found, after = shared.call(
        lambda api: gather_pages(api.incidents(filters, listing.most, listing.cursor), "incident")
    )
    if as_json:
        print_json({"incidents": found, "next": after})
        return
    from baton.cli.text.tables import incident_rows

    print_lines(incident_rows(found, terminal_width()))
    if not found:
        click.echo("no such incidents" if status != "all" else "no incidents yet", err=True)
    elif status != "resolved":
        click.echo("Look at a saga with: " + command_line("show SAGA"), err=True)
    print_more(after)


def _show_incident(found: Mapping[str, Any]) -> None:
    from baton.cli.text.tables import incident_rows

    print_lines(incident_rows([found], terminal_width()))
    if found.get("acknowledged_by"):
        note = f": {plain(str(found['note']))}" if found.get("note") else ""
        click.echo(
            f"acknowledged by {plain(str(found['acknowledged_by']))}, {found['acknowledged_at']}{note}"
        )
    if found.get("resolved_by"):
        click.echo(f"resolved by {plain(str(found['resolved_by']))}, {found['resolved_at']}")


@click.command(short_help="Acknowledge an incident.")
@click.argument("incident")
@click.option("--note", default="", help="For those who look at it next.")
@json_option
@click.pass_obj
def acknowledge(shared: Shared, incident: str, note: str, as_json: bool) -> None:
    """Acknowledge an incident for yourself. It stays open, and is no longer among the unacknowledged ones."""
    taken = shared.call(lambda api: api.set_incident(incident, "acknowledge", {"note": note} if note else {}))
    print_answer(taken, as_json, f"{incident}  is acknowledged, by {taken.get('acknowledged_by')}")


@click.command(short_help="Say that an incident is dealt with.")
@click.argument("incident")
@json_option
@click.pass_obj
def resolve(shared: Shared, incident: str, as_json: bool) -> None:
    """Resolve an incident. Answering, resuming, cancelling or forking its saga resolves it, too."""
    resolved = shared.call(lambda api: api.set_incident(incident, "resolve", {}))
    print_answer(resolved, as_json, f"{incident}  is resolved, by {resolved.get('resolved_by')}")
