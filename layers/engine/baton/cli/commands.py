"""The group of all commands and their shared parts: address, credentials, exit statuses.

Each family of commands has a file of its own, whose imports are light, because `baton --help` and completion
import all of them.
"""

from __future__ import annotations

import difflib
import os
from typing import Any

import click

from baton.cli.deployment.catalog import node_types, pipelines, tools
from baton.cli.deployment.letters import dlq
from baton.cli.deployment.operations import (
    aliases,
    breakers,
    budget,
    claims,
    cost,
    error_budget,
    facts,
    schedule,
    users,
    versions,
)
from baton.cli.deployment.people import acknowledge, answer, claim, inbox, incidents, remind, resolve
from baton.cli.deployment.sagas import (
    events,
    explain,
    intend,
    list_sagas,
    live,
    logs,
    messages,
    show,
    start,
    steps,
    value,
    warm,
)
from baton.cli.deployment.steering import (
    cancel,
    doctor,
    fork,
    pause_saga,
    replay,
    resume,
    retry_saga,
    rollback,
    say,
    send_events,
    signal,
    wake,
)
from baton.cli.deployment.travel import diff, state
from baton.cli.documents.check import check
from baton.cli.documents.workflows import (
    deploy_workflow,
    migrate,
    patch,
    patch_workflow,
    tag,
    tags,
    workflows,
)
from baton.cli.machine.local import demo, failover, token, up
from baton.cli.machine.project import mcp, new, render, upgrade
from baton.cli.terminal.completion import completion
from baton.cli.terminal.shared import Shared, drop_output, is_full, open_streams
from baton.client import exits
from baton.core.version import VERSION

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "On this machine": (new, up, token, demo, failover, check, mcp, render, upgrade),
    "Workflows": (
        deploy_workflow,
        patch_workflow,
        workflows,
        tag,
        tags,
        schedule,
        tools,
        node_types,
        pipelines,
        versions,
    ),
    "Sagas": (
        *(
            start,
            intend,
            warm,
            list_sagas,
            show,
            events,
            steps,
            logs,
            live,
            messages,
            value,
            explain,
            state,
            diff,
            cost,
            budget,
        ),
        *(
            cancel,
            signal,
            say,
            send_events,
            inbox,
            answer,
            claim,
            remind,
            patch,
            pause_saga,
            resume,
            retry_saga,
            wake,
            fork,
            migrate,
            rollback,
        ),
    ),
    "Incidents": (
        doctor,
        replay,
        incidents,
        acknowledge,
        resolve,
        claims,
        aliases,
        breakers,
        error_budget,
        facts,
        users,
        dlq,
    ),
    "Shell": (completion,),
}


# What other tools call it.
_ELSEWHERE = {"status": "show", "ps": "list", "ls": "list", "log": "events", "run": "start"}


class _Group(click.Group):
    """Group of commands in sections, with a hint for an unknown command, and the exit statuses at the end."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = [name for name, command in self.commands.items() if not command.hidden]
            close = [_ELSEWHERE[args[0]]] if args[0] in _ELSEWHERE else []
            close = close or [name for name in known if name.startswith(args[0])]
            close = close or difflib.get_close_matches(args[0], known, cutoff=0.5)
            close.sort(key=lambda name: sorted(name) != sorted(args[0]))  # swapped letters first
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        open_streams()
        try:
            return super().main(*args, **extra)
        except SystemExit as end:
            # click ends with 1, which here is an answer, when the reader of its output has gone.
            if isinstance(end.__context__, BrokenPipeError):
                raise SystemExit(exits.UNREAD) from None
            raise
        except OSError as error:
            if not is_full(error):
                raise
            drop_output()
            exits.CommandFailed(exits.USAGE, f"the output cannot be written: {error.strerror}").show()
            raise SystemExit(exits.USAGE) from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise exits.Interrupted from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                limit = formatter.width - 22
                formatter.write_dl(
                    [(command.name or "", command.get_short_help_str(limit)) for command in section]
                )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit statuses"):
            formatter.write_dl([(str(code), meaning) for code, meaning in exits.MEANINGS.items()])


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", envvar="BATON_URL", help="Address of the API.  [env: BATON_URL]")
@click.option("--token", envvar="BATON_TOKEN", help="Token to show there.  [env: BATON_TOKEN]")
@click.option(
    "--aws",
    is_flag=True,
    help="Sign requests with your AWS credentials instead; so they are for an address of API Gateway when no "
    "token is known.  [env: BATON_AUTH=aws or token]",
)
@click.version_option(VERSION)
@click.pass_context
def main(context: click.Context, url: str | None, token: str | None, aws: bool) -> None:
    """Start, watch and steer sagas; check workflow documents; run everything on this machine.

    Without --url and --token the commands speak to what `baton up` started in this directory.
    """
    context.obj = Shared(url, token, "aws" if aws else os.environ.get("BATON_AUTH") or None)


for _section in SECTIONS.values():
    for _command in _section:
        main.add_command(_command)


def _former_name() -> click.Command:
    """Return `deploy-workflow` under its former name, which still works and is hidden."""
    now = deploy_workflow
    return click.Command("register", hidden=True, params=now.params, callback=now.callback, help=now.help)


main.add_command(_former_name())
