"""`std.notify`: a mail to one person, which is sent once in 24 hours however often it is asked for;
`std.notify_cancelled` takes it back.

That it is sent once is the engine's doing, by the key below; how it is sent, the mailer's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from baton.core.effects.keys import Key
from baton.ports import StepContext, StepFailure
from baton.ports.outside import Letter
from baton.tools.define import Registry
from baton.tools.standard.http import signed_headers
from baton.tools.standard.kit import Services, standard_tool

Address = Annotated[str, Field(pattern=r"^[^@\s<>,;:\"]+@[^@\s<>,;:\"]+$", max_length=254)]
# A line break in a subject would begin a header of its own.
MOST_OF_A_SUBJECT = 200
Subject = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=MOST_OF_A_SUBJECT)]
Message = Annotated[str, Field(min_length=1, max_length=1_000, description="The service's own name for it.")]
Reason = Annotated[str, Field(max_length=10_000, description="Why, for that person.")]
Body = Annotated[str, Field(min_length=1, max_length=100_000)]


class Sent(BaseModel):
    """`message` is the service's own name for it."""

    message: str
    to: str


def declare(registry: Registry, services: Services) -> None:
    @standard_tool(
        "std.notify",
        registry=registry,
        effect="once",
        undo="std.notify_cancelled",
        domain="external_api",
        # Whichever saga of the tenant asks for it: what counts is what one person gets.
        key=Key.content("to", "subject", "text", "html", keep="24h", anyone=True),
    )
    async def notify(to: Address, subject: Subject, text: Body, context: StepContext, html: str = "") -> Sent:
        """Send a mail to one person.
        The same mail to the same person is sent once in 24 hours, by whichever node asks first.
        """
        return await _sent(services, context, to, subject, text, html)

    @standard_tool(
        "std.notify_cancelled",
        registry=registry,
        effect="once",
        domain="external_api",
        # Once for each mail that was sent, whichever saga takes it back.
        key=Key.content("to", "message", anyone=True),
    )
    async def notify_cancelled(
        to: Address, subject: Subject, message: Message, context: StepContext, reason: Reason = ""
    ) -> Sent:
        """Tell the person to whom a mail was sent that what it says does not hold any more.
        Once for each mail.

        subject, message: those of that mail.
        """
        said = f"What we have told you in our message “{subject}” does not hold any more: it was cancelled."
        text = f"{said}\n\n{reason}" if reason else said
        return await _sent(services, context, to, f"Cancelled: {subject}"[:MOST_OF_A_SUBJECT], text, "")


async def _sent(
    services: Services, context: StepContext, to: str, subject: str, text: str, html: str
) -> Sent:
    """Send the mail. Raises `StepFailure`."""
    if not services.mail_from:
        raise StepFailure(
            "input_invalid", "there is no sender: set `MailFrom` of the deployment to an address of yours"
        )
    content = "\0".join((subject, text, html)).encode(errors="replace")
    who = signed_headers(services, context, "MAIL", to, content=content)
    letter = Letter(
        sender=services.mail_from, to=to, subject=subject, text=text, html=html,
        headers={f"X-{name}": value for name, value in who.items()},
    )  # fmt: skip
    return Sent(message=await services.stored(services.mailer.send, letter), to=to)
