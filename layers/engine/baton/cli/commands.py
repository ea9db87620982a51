"""The group of all commands and what they share: the address, the token, `--json`.

Belongs here: putting the commands together. Each family of commands has a file of its own.
"""

from __future__ import annotations

import click

from baton.cli import exits
from baton.cli.check import check
from baton.cli.local import demo, up
from baton.cli.sagas import cancel, events, fork, register, resume, show, signal, start
from baton.cli.shared import Shared


class _Group(click.Group):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        for line in exits.HELP.splitlines():
            formatter.write(line + "\n")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", envvar="BATON_URL", help="Address of the API.  [env: BATON_URL]")
@click.option("--token", envvar="BATON_TOKEN", help="Token to show there.  [env: BATON_TOKEN]")
@click.version_option(package_name="baton")
@click.pass_context
def main(context: click.Context, url: str | None, token: str | None) -> None:
    """Start, watch and steer sagas; check workflow documents; run everything on this machine.

    Without --url and --token the commands speak to what `baton up` started in this directory.
    """
    context.obj = Shared(url, token)


for _command in (start, show, events, cancel, signal, resume, fork, register, check, up, demo):
    main.add_command(_command)
