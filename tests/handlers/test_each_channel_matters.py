"""The settings of channels: with another value a worker tells other people, or by other ways.

What a channel does is in tests/channels and tests/contract.
"""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log.events import Notice
from baton.errors import ChannelRefused
from baton.ports import Telling
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.settings import SettingsError, WorkerSettings, variable_of
from tests.handlers.deployment import Deployment
from tests.kit.sentences import Says

REQUIRED: dict[str, Any] = {
    "table": "t",
    "bucket": "b",
    "dead_letter_url": "q",
    "queue_url": "q",
    "worker": "w",
    "notices_topic": "a",
    "api_url": "a",
}


def channels_of_a_worker(deployment: Deployment, **settings: str) -> dict[str, Any]:
    """By name, what a worker with these settings tells people by."""
    changed = {variable_of(name): value for name, value in settings.items()}
    with deployment.function("worker", **changed) as module:
        module._loop.close()
        return {channel.name: channel for channel in module._engine.notices}


def a_telling(to: str) -> Telling:
    notice = Notice(key="k", to=to, code="approval", message="May it?", at=1)
    return Telling(tenant="acme", saga="s1", user="ada", notice=notice, now=1)


def reached_by_mail(deployment: Deployment, **settings: str) -> list[str]:
    channels = channels_of_a_worker(deployment, mail_from="desk@a.example", **settings)
    mail = channels.get("mail")
    return [
        to for to in ("user", "user:ada", "group:hosts") if mail is not None and mail.reaches(a_telling(to))
    ]


def test_confirm_url(deployment: Deployment) -> None:
    for url in ("", "https://a.example/answer"):
        with deployment.function("worker", BATON_CONFIRM_URL=url) as module:
            notifier = InvocationScope(module._engine, Invocation("i", 0, 10_000)).notifier()
            assert (notifier._channels._links is not None) == bool(url)
            assert module._engine.confirm_url == url
            module._loop.close()


def test_mail_to(deployment: Deployment) -> None:
    assert reached_by_mail(deployment, mail_to="{name}@a.example") == ["user", "user:ada"]
    assert reached_by_mail(deployment) == []


def test_group_mail_to(deployment: Deployment) -> None:
    assert reached_by_mail(deployment, group_mail_to="{name}@a.example") == ["group:hosts"]


SECRETS = f"whsec_{'A' * 32} whsec_{'B' * 43}="


def test_webhook_url(deployment: Deployment, says: Says) -> None:
    given = {"webhook_url": "https://a.example/x", "webhook_secret": SECRETS}
    with says.raised(ChannelRefused):
        channels_of_a_worker(deployment, **given)["webhook"].tell(a_telling("user"))


def test_webhook_secret(deployment: Deployment) -> None:
    given = {"webhook_url": "https://a.example/x", "webhook_secret": SECRETS}
    assert [len(key) for key in channels_of_a_worker(deployment, **given)["webhook"]._keys] == [24, 32]
    with pytest.raises(SettingsError, match="BATON_WEBHOOK_SECRET"):
        channels_of_a_worker(deployment, webhook_url="https://a.example/x")
    assert "whsec" not in repr(WorkerSettings(**REQUIRED, webhook_secret=SECRETS))


def test_event_bus_name(deployment: Deployment) -> None:
    assert channels_of_a_worker(deployment, event_bus_name="b")["events"]._bus == "b"
