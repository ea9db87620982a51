"""Commands about circuit breakers, claims, schedules, money, and versions of the code."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from baton.cli.terminal.completion import complete_sagas
from baton.cli.terminal.shared import (
    Shared,
    gather_pages,
    json_option,
    key_option,
    print_answer,
    print_json,
    print_lines,
    print_table,
    terminal_width,
)
from baton.cli.terminal.values import Duration, read_pairs
from baton.client.exits import REFUSED, CommandFailed
from baton.core.read.day_costs import AWS, BY
from baton.errors import BatonError

_DEEDS = ("show", "open", "reset")


@click.command(short_help="List circuit breakers; show, open or reset one.")
@click.argument("deed", required=False, type=click.Choice(_DEEDS))
@click.argument("name", required=False)
@click.option(
    "--for", "for_", type=Duration(), help="With open: for so long, e.g. 10m; without it until it is reset."
)
@json_option
@click.pass_obj
def breakers(shared: Shared, deed: str | None, name: str | None, for_: float | None, as_json: bool) -> None:
    """List circuit breakers with recorded state, show one with its last failures, open it, or reset it.

    While a breaker is open, no call of its tools or nodes is made: steps wait.
    """
    if (deed is None) != (name is None):
        raise click.UsageError("give the NAME of a breaker behind show, open or reset")
    if for_ is not None and deed != "open":
        raise click.UsageError("--for goes with open")
    if deed is None or name is None:
        found, _ = shared.call(lambda api: gather_pages(api.breakers(), "breaker"))
        if as_json:
            print_json({"breakers": found})
            return
        from baton.cli.text.tables import breaker_rows

        print_lines(breaker_rows(found) or ["no call with a breaker has failed for 30 days"])
        return
    if deed == "show":
        one = shared.call(lambda api: api.breaker(name))
    else:
        body = {} if for_ is None else {"for_s": for_}
        one = shared.call(lambda api: api.set_breaker(name, deed, body))
    if as_json:
        print_json(one)
        return
    from baton.cli.text.tables import breaker_lines

    print_lines(breaker_lines(one))
    if deed == "open" and len(one["transitions"]) == 1 and not one["failures"]:
        click.echo(
            f"Nothing was known of a breaker `{name}` before. It holds back the calls of tools and nodes that name it, and no others.",
            err=True,
        )


_CLAIM_DEEDS = ("find", "show", "free")


@click.command(short_help="List claims of once-only effects; show or free one.")
@click.argument("deed", metavar="[SAGA|find TOOL|show KEY|free KEY]")
@click.argument("name", required=False, metavar="")
@click.option(
    "--set",
    "pairs",
    metavar="NAME=VALUE",
    multiple=True,
    help="With find: parameter of the call; repeat the option for more.",
)
@click.option("--key", "given", help="With find: the `key` of the call's node, in the place of --set.")
@click.option("--user", help="With find: user of the call, if the key is made of it. Default: you.")
@click.option("--at", metavar="TIME", help="With find: time of the call, if the key is made of a window.")
@click.option("--reason", help="With free: why, which is kept with the claim and in the log.")
@click.option(
    "--force", is_flag=True, help="With free: although it may have happened, and may then happen twice."
)
@json_option
@click.pass_obj
def claims(
    shared: Shared,
    deed: str,
    name: str | None,
    pairs: tuple[str, ...],
    given: str | None,
    user: str | None,
    at: str | None,
    reason: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """List the claims of once-only effects of a saga, or find those of a tool by the parameters that its key
    is made of; show one, or free it, so that the next call with its key acts.
    """
    if (deed in _CLAIM_DEEDS) != (name is not None):
        raise click.UsageError("give the id of a SAGA, `find TOOL`, `show KEY` or `free KEY`")
    if any((pairs, given, user, at)) and deed != "find":
        raise click.UsageError("--set, --key, --user and --at go with find")
    if (force or reason is not None) and deed != "free":
        raise click.UsageError("--reason and --force go with free")
    if deed == "free" and not reason:
        raise click.UsageError("free needs a --reason")
    if name is None or deed == "find":
        query = {"key": given, "user": user, "at": at}
        if pairs:
            query["with"] = json.dumps(read_pairs(pairs, "--set"))
        asked = {key: value for key, value in query.items() if value}
        found = shared.call(lambda api: api.claims_of(deed) if name is None else api.find_claims(name, asked))
        if as_json:
            print_json({"claims": found})
            return
        from baton.cli.text.tables import claim_rows

        print_lines(claim_rows(found) or ["no claims: no call of a tool with `effect=once` has begun"])
        return
    key = name
    one = shared.call(
        lambda api: (
            api.effect_claim(key) if deed == "show" else api.free_claim(key, reason or "", force=force)
        )
    )
    if as_json:
        print_json(one)
        return
    from baton.cli.text.tables import claim_lines

    print_lines(claim_lines(one))


_ALIAS_DEEDS = ("approve", "reject", "drop")


@click.command(short_help="List names that models give to parameters; approve, reject or drop an alias.")
@click.argument("deed", required=False, type=click.Choice(_ALIAS_DEEDS))
@click.argument("tool", required=False)
@click.argument("given", required=False)
@click.argument("parameter", required=False)
@json_option
@click.pass_obj
def aliases(
    shared: Shared,
    deed: str | None,
    tool: str | None,
    given: str | None,
    parameter: str | None,
    as_json: bool,
) -> None:
    """List the names that models give to parameters of tools in the place of their own, and decide which are
    aliases.

    An approved alias is applied to the calls of models. `approve refund orderid order_id` lets them write
    `orderid`.
    """
    if deed is None or tool is None or given is None or parameter is None:
        if deed is not None:
            raise click.UsageError(f"give the TOOL, the GIVEN name and the PARAMETER behind {deed}")
        found = shared.call(lambda api: api.aliases())
    else:
        of = tool, given, parameter
        found = shared.call(lambda api: api.decide_alias(*of, deed))
    if as_json:
        print_json({"aliases": found})
        return
    from baton.cli.text.tables import alias_rows

    print_lines(alias_rows(found) or ["no model has named a parameter otherwise than its tool"])


@click.command("error-budget", short_help="Show how many sagas have failed on a day, and may.")
@click.option("--day", metavar="YYYY-MM-DD", help="The day (UTC); without it today.")
@json_option
@click.pass_obj
def error_budget(shared: Shared, day: str | None, as_json: bool) -> None:
    """Show the error budgets of workflows for a day: failed sagas, and how many more may fail."""
    from baton.core.read.costs import added_up

    found = added_up(shared.call(lambda api: api.error_budgets(day)))
    if as_json:
        print_json(found)
        return
    from baton.cli.text.tables import error_budget_lines

    print_lines(error_budget_lines(found))


_name = click.argument("name")


@click.group(short_help="List schedules; pause, resume or trigger one.")
def schedule() -> None:
    """List, pause, resume or trigger schedules: workflows that start automatically,
    because their documents have a `schedule`.
    """


@schedule.command("list", short_help="List schedules.")
@json_option
@click.pass_obj
def list_schedules(shared: Shared, as_json: bool) -> None:
    """List schedules by workflow name, with the next tick of each and the results of earlier ticks."""
    found, _ = shared.call(lambda api: gather_pages(api.schedules(), "schedule"))
    if as_json:
        print_json({"schedules": found})
        return
    from baton.cli.text.tables import schedule_rows

    print_lines(schedule_rows(found) or ["no workflow has a schedule: write `schedule` into its document"])


@schedule.command(short_help="Show a schedule and its last ticks.")
@_name
@json_option
@click.pass_obj
def show(shared: Shared, name: str, as_json: bool) -> None:
    """Show the schedule of a workflow, and the results of its last ticks."""
    _show(shared.call(lambda api: api.schedule(name)), as_json)


@schedule.command(short_help="Start nothing more until it is resumed.")
@_name
@json_option
@click.pass_obj
def pause(shared: Shared, name: str, as_json: bool) -> None:
    """Pause the schedule of a workflow until it is resumed. Its running sagas continue."""
    _show(shared.call(lambda api: api.set_schedule(name, "pause")), as_json)


@schedule.command(short_help="Go on with the next tick.")
@_name
@json_option
@click.pass_obj
def resume(shared: Shared, name: str, as_json: bool) -> None:
    """Resume a schedule with its next tick. Ticks of the pause are not made up for."""
    _show(shared.call(lambda api: api.set_schedule(name, "resume")), as_json)


@schedule.command(short_help="Start a saga now, as the schedule would.")
@_name
@key_option
@json_option
@click.pass_obj
def trigger(shared: Shared, name: str, key: str | None, as_json: bool) -> None:
    """Start a saga now, with the input of the schedule, even if another one is running."""
    started = shared.call(lambda api: api.trigger(name, key or ""))
    print_answer(started, as_json, f"{started['id']}  {started['status']}")


def _show(one: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    from baton.cli.text.tables import schedule_lines

    print_lines(schedule_lines(one))


@click.command(short_help="Show what your sagas have spent today.")
@json_option
@click.pass_obj
def budget(shared: Shared, as_json: bool) -> None:
    """Show the spending of your sagas today (UTC) on tools with a cost, and the rest of the budget."""
    found = shared.call(lambda api: api.budget())
    if as_json:
        print_json(found)
        return
    from baton.cli.text.tables import budget_table

    print_table(budget_table(found))


@click.command(short_help="Show what a saga has cost, estimated, or models on a day.")
@click.argument("saga", required=False, shell_complete=complete_sagas)
@click.option("--by", type=click.Choice(BY), help="Add up what models have cost all sagas of a day.")
@click.option("--day", metavar="YYYY-MM-DD", help="With --by: the day (UTC); without it today.")
@click.option(
    "--aws", is_flag=True, help="With --by: what AWS has cost, for which the log of each saga is read."
)
@json_option
@click.pass_obj
def cost(shared: Shared, saga: str | None, by: str | None, day: str | None, aws: bool, as_json: bool) -> None:
    """Show the cost of a saga so far, estimated from its log. With --by, the costs of models or AWS for all
    sagas of a day.
    """
    if by is not None and saga is None:
        _costs_of_a_day(shared, by, day, AWS if aws else "", as_json)
        return
    if saga is None or by is not None or day is not None or aws:
        raise click.UsageError("give either a saga, or --by with or without --day and --aws")
    found = shared.call(lambda api: api.cost(saga))
    if as_json:
        print_json(found)
        return
    from baton.cli.text.tables import cost_lines

    print_lines(cost_lines(found, terminal_width()))


def _costs_of_a_day(shared: Shared, by: str, day: str | None, of: str, as_json: bool) -> None:
    found = shared.call(lambda api: api.costs(by, day, of))
    if as_json:
        print_json(found)
        return
    from baton.cli.text.tables import day_cost_lines

    print_lines(day_cost_lines(found))


_USER_ACTIONS = ("show", "block", "unblock", "limit", "unlimit")


@click.command(short_help="List users with what they spent; block or limit one.")
@click.argument("deed", required=False, type=click.Choice(_USER_ACTIONS))
@click.argument("user", required=False)
@click.argument("usd", required=False)
@click.option("--note", help="With all but show: why, for operators who look at it next.")
@json_option
@click.pass_obj
def users(
    shared: Shared, deed: str | None, user: str | None, usd: str | None, note: str | None, as_json: bool
) -> None:
    """List users with their spending of today (UTC); show one, block or unblock it, or set a limit of its
    own.

    No saga of a blocked user starts or spends. `limit USER USD` sets the daily limit of this user in place of
    the limit of all users; `unlimit USER` restores that.
    """
    _check(deed, user, usd, note)
    if deed is None or user is None:
        found = shared.call(lambda api: api.users())
        if as_json:
            print_json(found)
            return
        from baton.cli.text.tables import user_rows

        print_lines(user_rows(found))
        return
    one = _asked(shared, deed, user, usd, note)
    if as_json:
        print_json(one)
        return
    from baton.cli.text.tables import user_lines

    print_lines(user_lines(one))
    if deed == "block" and not one["spent_usd"]:
        click.echo(
            f"`{user}` has spent nothing today. A user is named as `baton show` names that of a saga.",
            err=True,
        )
    elif deed not in ("show", "block"):
        click.echo(
            "Sagas that were parked before go on when the day turns (UTC), or with `baton resume SAGA`.",
            err=True,
        )


def _check(deed: str | None, user: str | None, usd: str | None, note: str | None) -> None:
    """Raise `UsageError` for an inconsistent combination of arguments."""
    if (deed is None) != (user is None):
        raise click.UsageError("give the USER behind show, block, unblock, limit or unlimit")
    if (deed == "limit") != (usd is not None):
        raise click.UsageError("an amount of dollars goes with limit, and limit needs one: limit USER USD")
    if note is not None and deed in (None, "show"):
        raise click.UsageError("--note goes with block, unblock, limit and unlimit")


def _asked(shared: Shared, deed: str, user: str, usd: str | None, note: str | None) -> dict[str, Any]:
    if deed == "show":
        return shared.call(lambda api: api.user(user))
    body: dict[str, Any] = {"user": user}
    if note:
        body["note"] = note
    if deed in ("limit", "unlimit"):
        body["limit_usd"] = usd
    return shared.call(lambda api: api.set_user("limit" if deed == "unlimit" else deed, body))


@click.command(short_help="List what is remembered about a user; erase it.")
@click.argument("user")
@click.option("--erase", is_flag=True, help="Erase all facts of the user, with their vectors.")
@json_option
@click.pass_obj
def facts(shared: Shared, user: str, erase: bool, as_json: bool) -> None:
    """List the facts that sagas have kept about a user with `std.remember`, or erase them.

    What sagas of the user have in their own logs stays until they expire.
    """
    if erase:
        erased, more = 0, True
        while more:
            done = shared.call(lambda api: api.set_user("forget", {"user": user}))
            erased, more = erased + done["erased"], done["more"]
        if as_json:
            print_json({"erased": erased})
        else:
            click.echo(f"Facts of `{user}` that were erased: {erased}")
        return
    found, _ = shared.call(lambda api: gather_pages(api.facts(user), "fact"))
    if as_json:
        print_json({"facts": found})
        return
    from baton.cli.text.tables import fact_rows

    print_lines(fact_rows(found))


@click.command(short_help="List the versions of the code with which sagas stay.")
@click.option("--stack", required=True, envvar="BATON_STACK", help="Name of the stack.  [env: BATON_STACK]")
@click.option("--delete", is_flag=True, help="Delete those with which no open saga stays.")
@json_option
def versions(stack: str, delete: bool, as_json: bool) -> None:
    """List the versions of the worker with which sagas of workflow functions stay, and the number of these
    sagas.

    Looks at each open saga of all tenants, with your AWS credentials. With --delete: deletes versions with
    which none stays, and lists these. With --json: {"versions": [{"build", "version", "sagas", "kept"}, …]}.
    """
    import asyncio

    from baton.wiring import look_at_builds

    try:
        found = asyncio.run(look_at_builds(stack, delete=delete))
    except BatonError as error:
        raise CommandFailed(REFUSED, str(error)) from error
    if as_json:
        print_json({"versions": list(map(asdict, found))})
        return
    done = "deleted" if delete else "no open saga stays with it: --delete deletes it"
    print_lines(f"{one.version or '-':>6}  build {one.build}: {one.kept or done}" for one in found)
    if not found:
        print_lines(["no version is drained" if delete else "no saga stays with a version"])
