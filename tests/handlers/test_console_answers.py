"""Answering in the console: the inbox, forms, claims, and two people at once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from baton.core.log.events import Ask, QuestionOpened, SignalReceived
from baton.core.log.records import Option, Takeover
from baton.ports import QuestionRow
from tests.handlers.browsing import HOSTILE, SECRET, VARIABLE, Browser
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, GRACE, SILENT, append, begin
from tests.handlers.sagas import asking as failing
from tests.handlers.test_api_questions import DOCUMENT
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
LATE = 4_000_000_000_000
PAGE = f"/console/sagas/{ADA.id}/questions/0.form"
SCHEMA = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "maximum": 10},
        "guests": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
    "required": ["seats"],
}


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def host(http: Http) -> Browser:
    return Browser(http, user="eve", roles=("read", "answer"), groups=("hosts",))


def ask(http: Http, **changed: Any) -> None:
    given: dict[str, Any] = {
        "id": "0.form",
        "kind": "input",
        "type": "input",
        "title": "Seats",
        "message": HOSTILE,
        "options": ("submit",),
        "schema": SCHEMA,
        "to": "group:hosts",
        "asked_at": 1_767_225_600_000,
        "expires_at": LATE,
    }
    if http.engine.log.read_head(ADA) is None:
        begin(http.engine, ADA, DOCUMENT)
    append(http.engine, QuestionOpened(node="form", ask=Ask(**(given | changed))))


def answers(deployment: Deployment, ref: Any = ADA) -> list[Any]:
    events = [event for entry in deployment.entries(ref) for event in entry.events]
    return [event.payload.v for event in events if isinstance(event, SignalReceived)]


def test_the_inbox_lists_what_is_for_the_visitor_with_the_time_left(
    http: Http, host: Browser, says: Says
) -> None:
    says.within(host.get("/console/inbox").text)
    row = QuestionRow(
        saga=ADA.id, workflow="form", ask="0.form", type="input", kind="input", title="Seats", message=HOSTILE,
        to="group:hosts", expires_at=LATE,
    )  # fmt: skip
    http.engine.store.questions.put(ADA.tenant, row, 1, 0)
    seen = host.get("/console/inbox")
    assert f'href="{PAGE}"' in seen.html
    assert "expires in " in seen.text
    assert "Seats" not in Browser(http, user="bob", roles=("answer",)).get("/console/inbox").text


def test_a_form_that_is_filled_wrongly_and_then_rightly(
    http: Http, host: Browser, deployment: Deployment, says: Says
) -> None:
    ask(http)
    form = {"/data/seats": "many", "rows:/data/guests": "1", "/data/guests/0/name": "Ada", "action": "submit"}
    wrong = host.post(PAGE, form)
    assert (wrong.status, answers(deployment)) == (422, [])
    says.within(wrong.text)
    assert 'value="many"' in wrong.html
    assert 'value="Ada"' in wrong.html
    assert 'aria-invalid="true"' in wrong.html
    large = host.post(PAGE, form | {"/data/seats": "11"})
    assert large.status == 422
    says.within(large.text)
    right = host.post(PAGE, form | {"/data/seats": "4", "comment": "By the window."})
    assert (right.status, right.headers["location"]) == (303, f"/console/inbox?answered={ADA.id}")
    (said,) = answers(deployment)
    assert said["data"] == {"seats": 4, "guests": [{"name": "Ada"}]}
    assert said["comment"] == "By the window."


def test_a_row_is_added_without_an_answer(http: Http, host: Browser, deployment: Deployment) -> None:
    ask(http)
    seen = host.post(PAGE, {"rows:/data/guests": "1", "/data/guests/0/name": "Ada", "more": "/data/guests"})
    assert (seen.status, answers(deployment)) == (200, [])
    assert 'name="/data/guests/1/name"' in seen.html


def test_two_people_answer_at_once_and_the_second_is_told(
    http: Http, host: Browser, deployment: Deployment, says: Says
) -> None:
    ask(http)
    assert host.post(PAGE, {"/data/seats": "4", "action": "submit", "key": "a"}).status == 303
    other = Browser(http, user="bob", roles=("read", "answer"), groups=("hosts",))
    late = other.post(PAGE, {"/data/seats": "5", "action": "submit", "key": "b"})
    assert (late.status, len(answers(deployment))) == (409, 1)
    says.within(late.text, 2)


def test_who_may_not_answer_is_told_and_nothing_is_written(http: Http, deployment: Deployment) -> None:
    ask(http)
    stranger = Browser(http, user="bob", roles=("read", "answer"))
    assert stranger.post(PAGE, {"/data/seats": "4", "action": "submit"}).status == 403
    assert answers(deployment) == []


def test_a_question_is_claimed_and_given_back(http: Http, host: Browser) -> None:
    ask(http)
    assert "Claim it" in host.get(PAGE).text
    assert host.post(f"{PAGE}/claim").status == 303
    assert "You have claimed it" in host.get(PAGE).text
    other = Browser(http, user="bob", roles=("read", "answer"), groups=("hosts",))
    assert "eve has claimed it" in other.get(PAGE).text
    assert other.post(f"{PAGE}/claim").status == 409
    host.post(f"{PAGE}/claim", {"release": "yes"})
    assert "Claim it" in host.get(PAGE).text


def test_choices_are_buttons_in_the_authors_words(http: Http, host: Browser, deployment: Deployment) -> None:
    options = (
        Option(id="late", label="Later <b>", description="At nine."),
        Option(id="no", destructive=True),
    )
    ask(http, type="choice", kind="choice", options=options, schema=None)
    seen = host.get(PAGE)
    assert "Later <b>" in seen.text
    assert "At nine." in seen.text
    assert host.post(PAGE, {"action": "late"}).status == 303
    assert answers(deployment)[0]["action"] == "late"


@pytest.mark.parametrize(
    ("url", "is_link"),
    [("https://shop.test/a", True), ("javascript:alert(1)", False), ("http://x.test", False)],
)
def test_an_address_from_outside_is_a_link_only_if_it_is_https(
    url: str, is_link: bool, http: Http, host: Browser
) -> None:
    takeover = Takeover(url=url, picture="", instructions="Finish it there.")
    ask(http, type="takeover", kind="takeover", options=("done",), schema=None, takeover=takeover)
    seen = host.get(PAGE)
    assert (f'href="{url}"' in seen.html) is is_link
    assert url in seen.text


@pytest.mark.parametrize(
    ("picture", "source", "allowed"),
    [
        ("https://shop.test:8443/a.png?x=1", "https://shop.test:8443/a.png?x=1", "https://shop.test:8443"),
        ("https://shop.test; script-src *", "https://shop.test; script-src *", "https://shop.test"),
        ("http://x.test/a.png", "", ""),
        ("cas://sha256/" + "0" * 64, "", ""),
    ],
)
def test_the_picture_of_a_takeover_is_shown_and_its_page_allows_no_other_source(
    picture: str, source: str, allowed: str, http: Http, host: Browser
) -> None:
    takeover = Takeover(url="https://shop.test/a", picture=picture, instructions="")
    ask(http, type="takeover", kind="takeover", options=("done",), schema=None, takeover=takeover)
    seen = host.get(PAGE)
    policy = seen.headers["content-security-policy"]
    assert [str(at["src"]) for tag, at in seen.elements() if tag == "img"] == [source][: bool(source)]
    assert f"img-src {allowed} 'self'".replace("  ", " ") in policy
    assert policy.count("script-src") == 1
    assert (f"Picture: {picture}" in seen.text) is not bool(source)


def test_a_stored_picture_is_a_part_of_its_page(http: Http, host: Browser) -> None:
    png = "iVBORw0KGgo" + "A" * 40_000
    begin(http.engine, ADA, DOCUMENT, png)
    (address,) = re.findall(r"cas://sha256/[0-9a-f]{64}", host.get(f"/console/sagas/{ADA.id}/log.json").html)
    takeover = Takeover(url="https://shop.test/a", picture=address, instructions="")
    ask(http, type="takeover", kind="takeover", options=("done",), schema=None, takeover=takeover)
    seen = host.get(PAGE)
    assert f'src="data:image/png;base64,{png}"' in seen.html
    assert "img-src data: 'self'" in seen.headers["content-security-policy"]


def test_a_question_that_is_not_open_is_said(http: Http, host: Browser) -> None:
    ask(http)
    assert host.get(f"/console/sagas/{ADA.id}/questions/0.other").status == 404
    assert host.post(f"/console/sagas/{ADA.id}/questions/0.other", {"action": "submit"}).status == 409


def test_a_step_that_failed_is_tried_again_or_given_an_output(http: Http, deployment: Deployment) -> None:
    failing(http.engine, GRACE, SILENT)
    page, ada = f"/console/sagas/{GRACE.id}/questions/0.say.3", Browser(http)
    assert "Try again" in ada.get(page).text
    wrong = ada.post(page, {"action": "use", "output": "{"})
    assert (wrong.status, "is no JSON" in wrong.text) == (422, True)
    assert ada.post(page, {"action": "use", "output": '{"a": 1}'}).status == 303
    assert answers(deployment, GRACE)[0]["output"] == {"a": 1}


def test_the_same_is_shown_for_a_shell(http: Http, host: Browser) -> None:
    ask(http)
    text = host.get(PAGE).text
    assert f"baton answer {ADA.id} 0.form submit --data '{{}}'" in text
    assert f"curl -X POST https://api.test/sagas/{ADA.id}/answer" in text
