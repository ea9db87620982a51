"""`Mailer` on AWS, and `std.notify` from the claim to the inbox: the same mail to the same person once in 24 hours."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest

from baton.adapters.aws import Aws
from baton.adapters.ses_mailer import SesMailer
from baton.core.effects.keys import key_of
from baton.core.limits import Limits
from baton.ports import Clock, StepContext
from baton.ports.outside import Entities, HttpClient, Letter, Objects
from baton.runtime.invocation.context import Invocation, InvocationContext, StoreRetrier, Tenure, Threads
from baton.runtime.steps.effects import EffectClaims, EffectResult
from baton.tools.perform import ToolPerformer
from baton.tools.standard import Services, standard_tools
from tests.contract.stores import Stores
from tests.kit.virtual_time import SeededEntropy

DESK = "desk@lantern.example"
DAY_MS = 86_400_000
NOON = 20_000 * DAY_MS + DAY_MS // 2
TONIGHT = {"to": "ada@home.example", "subject": "Tonight", "text": "At 8."}
LIMITS = Limits(effect_pause_first_ms=1, effect_pause_longest_ms=2)


@dataclass
class Hands:
    """A clock that is set by hand."""

    time: int = NOON

    def now(self) -> int:
        return self.time


class Desk:
    """Sagas that send mail: the engine's own executor and tool, on the stores and the mail service of one backend."""

    def __init__(self, stores: Stores, mailer: SesMailer) -> None:
        self.clock, self._stores, self._threads = Hands(), stores, Threads(20)
        services = Services(
            http=cast("HttpClient", None),
            entities=cast("Entities", None),
            objects=cast("Objects", None),
            mailer=mailer,
            clock=self.clock,
            offload=self._threads,
            mail_from=DESK,
            signing_key="x" * 32,
        )
        tools = standard_tools(services)
        self._performer, self._spec = ToolPerformer(tools), tools["std.notify"].spec

    def notify(self, sagas: range, letter: dict[str, str]) -> list[str]:
        """What each of these sagas, all at once and each of a user of its own, has as the name of its message."""

        async def together() -> list[EffectResult]:
            return list(await asyncio.gather(*(self._attempt(number, letter) for number in sagas)))

        return [cast("dict[str, str]", done.value.v)["message"] for done in asyncio.run(together())]

    async def _attempt(self, number: int, letter: dict[str, str]) -> EffectResult:
        saga, user, clock = f"s{number}", f"u{number}", cast("Clock", self.clock)
        who: dict[str, Any] = {"tenant": "acme", "user": user, "saga": saga, "node": "tell"}
        rule = self._spec.key
        key = key_of(
            rule, **who, tool="std.notify", parameters=letter, occurrence=(), at=clock.now() + number
        )
        deadline = clock.now() + 30_000
        context = StepContext(**who, idempotency_key=key, deadline_ms=deadline)
        entropy, stores = SeededEntropy(number), self._stores
        call = StoreRetrier(self._threads, clock, entropy, LIMITS, deadline)
        me = Invocation(saga, clock.now(), deadline)
        once = EffectClaims(
            InvocationContext(
                me, stores.store, stores.blobs, clock, entropy, LIMITS, call, Tenure.of(me, clock, LIMITS)
            )
        )
        act = partial(self._performer.perform, "std.notify", letter, context)
        return await once.run(self._spec, "tell#0", context, act)


@pytest.fixture
def post(ministack: str) -> SesMailer:
    client = Aws(ministack).sesv2
    if DESK not in {each["IdentityName"] for each in client.list_email_identities()["EmailIdentities"]}:
        client.create_email_identity(EmailIdentity=DESK)
    return SesMailer(client)


def delivered(address: str, subject: str) -> list[dict[str, Any]]:
    """What the embedded AWS has sent, by its own account."""
    with urllib.request.urlopen(f"{address}/_ministack/ses/messages", timeout=10) as answer:
        sent = json.load(answer)["messages"]
    return [each for of in sent.values() for each in of if each["Subject"] == subject]


def test_the_same_mail_to_the_same_person_is_sent_once_in_24_hours_by_all_sagas(
    ministack: str, embedded: Stores, post: SesMailer
) -> None:
    desk = Desk(embedded, post)
    names = desk.notify(range(20), TONIGHT)
    (sent,) = delivered(ministack, "Tonight")
    assert (sent["Source"], sent["To"], sent["BodyText"]) == (DESK, ["ada@home.example"], "At 8.")
    assert names == [sent["MessageId"]] * 20

    desk.clock.time += DAY_MS - 1
    assert desk.notify(range(20, 22), TONIGHT) == [sent["MessageId"]] * 2
    assert len(delivered(ministack, "Tonight")) == 1

    desk.clock.time += 1
    (again, *same) = desk.notify(range(22, 25), TONIGHT)
    assert same == [again] * 2 != [sent["MessageId"]] * 2
    assert len(delivered(ministack, "Tonight")) == 2


def test_another_person_or_another_text_is_another_mail(
    ministack: str, embedded: Stores, post: SesMailer
) -> None:
    desk = Desk(embedded, post)
    letters = [
        TONIGHT | {"subject": "Other"} | change
        for change in ({}, {"to": "bob@home.example"}, {"text": "At 9."})
    ]
    names = [name for letter in letters for name in desk.notify(range(2), letter)]
    assert len(set(names)) == len(delivered(ministack, "Other")) == 3


def test_a_letter_with_a_page_and_letters_of_any_script_arrives_as_it_was_written(
    ministack: str, post: SesMailer
) -> None:
    letter = Letter(
        sender=DESK, to="ada@home.example", subject="Überraschung", text="食 At 8.", html="<b>食</b>"
    )
    name = post.send(letter)
    (sent,) = delivered(ministack, "Überraschung")
    assert (sent["MessageId"], sent["BodyText"], sent["BodyHtml"]) == (name, "食 At 8.", "<b>食</b>")


@pytest.fixture
def letter() -> Letter:
    return Letter(sender=DESK, to="ada@home.example", subject="Überraschung", text="At 8.")


def test_ses_refuses_an_address_that_is_not_verified(moto_aws: Aws, letter: Letter) -> None:
    mailer = SesMailer(moto_aws.sesv2)
    with pytest.raises(Exception, match="not verified"):
        mailer.send(letter)
    moto_aws.sesv2.create_email_identity(EmailIdentity=DESK)
    assert mailer.send(letter) != mailer.send(letter)
