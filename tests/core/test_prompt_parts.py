"""Images and files in prompts: how they are written, what is refused, and what they count for."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from baton.core.failures.alternatives import drop_older_half
from baton.core.models.messages import (
    MEDIA_TOKENS,
    MOST_MEDIA,
    MOST_MEDIUM,
    bytes_of,
    has_media,
    opening,
    request_bytes,
    shown_prompt,
    stored_media,
)
from tests.kit.sentences import Says


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


PNG, PDF = encoded(b"\x89PNG" + bytes(30)), encoded(b"%PDF-1.7 " + bytes(30))
ASK = {"text": "What is on it?"}
STORED = "cas://sha256/" + "0" * 64


def content(*parts: Any, stored: dict[str, Any] | None = None) -> Any:
    (message,) = opening({"prompt": list(parts)}, stored or {})
    return message["content"]


def url(data: str, media: str = "image/png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}}


@pytest.mark.parametrize(
    ("media", "begin"),
    [
        ("image/png", b"\x89PNG"),
        ("image/jpeg", b"\xff\xd8\xff"),
        ("image/gif", b"GIF89a"),
        ("image/webp", b"RIFF1234WEBP"),
    ],
)
def test_the_type_of_an_image_is_read_from_its_bytes(media: str, begin: bytes) -> None:
    data = encoded(begin + bytes(range(200, 256)) * 3)
    safe = base64.urlsafe_b64encode(base64.b64decode(data)).decode()
    lines = "\n".join(data[at : at + 76] for at in range(0, len(data), 76))
    for said in (data, f"data:text/html;base64,{data}", safe, lines):
        assert content(ASK, {"image": said}) == [
            {"type": "text", "text": ASK["text"]},
            url(data, media),
        ]


def test_an_image_may_be_an_address_or_a_stored_value() -> None:
    there = {"image": "https://example.com/a.png"}
    assert content(ASK, there)[1]["image_url"]["url"] == there["image"]
    assert stored_media([ASK, {"image": STORED}, {"file": STORED}, there]) == [STORED]
    with pytest.raises(ValueError, match="at most 20"):  # before one is read
        stored_media([ASK, *({"image": f"{STORED}{number}"} for number in range(21))])
    assert content(ASK, {"image": STORED}, stored={STORED: PNG})[1] == url(PNG)


@pytest.mark.parametrize("said", [PDF, f"data:application/pdf;base64,{PDF}"])
def test_a_pdf_is_a_file_with_a_name(said: str) -> None:
    file = {"filename": "bill.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
    assert content(ASK, {"file": said, "name": "bill.pdf"})[1] == {"type": "file", "file": file}
    assert content(ASK, {"file": said})[1]["file"]["filename"] == "file-2"


def test_any_other_file_is_text() -> None:
    for said in ("a,b\n1,2", f"data:text/csv;base64,{encoded(b'a,b' + bytes([10]) + b'1,2')}"):
        assert content(ASK, {"file": said, "name": "t.csv"})[1] == {
            "type": "text",
            "text": "t.csv:\na,b\n1,2",
        }


@pytest.mark.parametrize(
    "parts",
    [
        [{"image": PNG}],
        [ASK, *[{"image": PNG}] * (MOST_MEDIA + 1)],
        [ASK, {"image": "x" * (MOST_MEDIUM + 1)}],
        [ASK, *[{"image": "x" * MOST_MEDIUM}] * 5],
        [ASK, {"image": "hello"}],
        [ASK, {"image": PDF}],
        [ASK, {"image": "http://example.com/a.png"}],
        [ASK, {"file": "https://example.com/a.pdf"}],
        [ASK, {"file": PNG}],
        [ASK, {"file": f"data:application/zip;base64,{encoded(b'PK12')}"}],
        [ASK, {"file": f"data:;base64,{encoded(b'PK12')}"}],
        [ASK, {"file": f"data:text/plain;base64,{encoded(bytes([255, 254, 0]))}"}],
    ],
    ids=[
        "no text",
        "too many",
        "too large",
        "too large together",
        "no image",
        "PDF as image",
        "without TLS",
        "address of a file",
        "image as file",
        "zip",
        "no type",
        "no text in it",
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(parts: list[Any], says: Says) -> None:
    with says.raised(ValueError):
        content(*parts)


def test_a_stored_value_that_is_no_text_is_no_image(says: Says) -> None:
    with says.raised(ValueError):
        content(ASK, {"image": STORED}, stored={STORED: [1]})


@pytest.mark.parametrize(
    "prompt",
    [
        "text",
        {"image": PNG},
        [ASK],
        [ASK, {"image": 1}],
        [ASK, {"image": PNG, "alt": "x"}],
        [ASK, {"name": "x"}],
        [],
        [1],
    ],
)
def test_any_other_value_is_json_as_before(prompt: Any) -> None:
    assert not has_media(prompt)
    assert stored_media(prompt) == []
    assert isinstance(opening({"prompt": prompt})[0]["content"], str)


def test_an_image_counts_for_tokens_and_not_for_its_bytes() -> None:
    large = encoded(b"\x89PNG" + bytes(300_000))
    both = opening({"instructions": "Look.", "prompt": [ASK, {"image": large}]})
    plain = opening({"instructions": "Look.", "prompt": "?"})
    assert MEDIA_TOKENS < bytes_of(both) < MEDIA_TOKENS + 200
    assert bytes_of(plain) < request_bytes(plain) < 100
    assert bytes_of([]) == 0
    (_, file) = opening({"prompt": [ASK, {"file": encoded(b"%PDF-" + bytes(60_000))}]})[0]["content"]
    assert bytes_of([{"role": "user", "content": [file]}]) >= 60_000


def test_people_see_the_type_and_the_size() -> None:
    address = "https://example.com/a.png"
    shown = shown_prompt(
        [ASK, {"image": PNG}, {"file": PDF, "name": "b"}, {"file": "né"}, {"image": address}]
    )
    assert shown == [
        ASK,
        {"image": "[image/png, 34 bytes]"},
        {"file": "[application/pdf, 39 bytes]", "name": "b"},
        {"file": "[text, 3 bytes]"},
        {"image": address},
    ]
    assert shown_prompt("hi") == "hi"


def test_a_prompt_with_an_image_is_not_shortened() -> None:
    prompt = [ASK, {"text": "b"}, {"image": PNG}]
    assert drop_older_half(prompt) is prompt
    assert drop_older_half([1, 2]) == [2]
