"""What is said of standard tools that a document uses and a deployment has to switch on.

Which there are, core.effects.grants knows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from baton.client.program import typed

_NAME = re.compile(r"`(std\.\w+)`")
# What a tool cannot do without, besides being named.
_PARAMETERS = {
    "std.http": ("HttpHosts",),
    "std.http_pipeline": ("HttpHosts",),
    "std.notify": ("MailFrom", "SigningKey"),
    "std.openapi": ("HttpHosts", "OpenApis"),
    "std.pay": ("HttpHosts", "SigningKey"),
    "std.find_payment": ("HttpHosts", "SigningKey"),
    "std.refund": ("HttpHosts", "SigningKey"),
    "std.delete_resource": ("HttpHosts",),
    "std.notify_cancelled": ("MailFrom", "SigningKey"),
}


def tools_off(problems: Iterable[Mapping[str, Any]]) -> list[str]:
    """The standard tools that are not there because `StandardTools` does not name them, sorted."""
    said = (str(p.get("message")) for p in problems if "`StandardTools`" in str(p.get("suggestion")))
    return sorted({found[1] for message in said if (found := _NAME.search(message))})


def switching_on(names: Iterable[str]) -> str:
    """The command that runs everything here with these tools."""
    names = list(names)
    needed = dict.fromkeys(parameter for name in names for parameter in _PARAMETERS.get(name, ()))
    pairs = [shlex.quote(f"StandardTools={' '.join(names)}"), *(f"{parameter}=…" for parameter in needed)]
    return typed("up " + " ".join(f"--parameter {pair}" for pair in pairs))


def off_note(names: Iterable[str]) -> str:
    """What the author of a document that uses them may not expect."""
    names = list(names)
    are = "is" if len(names) == 1 else "are"
    them = "it" if len(names) == 1 else "them"
    return (
        f"{', '.join(names)} {are} off unless the deployment's StandardTools names {them} "
        f"(locally: {switching_on(names)})"
    )
