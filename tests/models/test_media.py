"""Images and files in the requests to each provider, and the refusal of one that takes none."""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.models.dialects import DIALECTS
from baton.adapters.models.profiles import Profiles
from baton.adapters.models.requests import background_body_of, body_of
from baton.core.models.messages import opening
from baton.ports import StepFailure
from examples.services.models import Refusal
from tests.core.test_prompt_parts import ASK, PDF, PNG
from tests.kit.provider import Served
from tests.kit.sentences import Says
from tests.models.asking import a_request, adapter_of, failure

PROMPT = [ASK, {"image": PNG}, {"file": PDF, "name": "bill (1).pdf"}]
ADDRESS = [ASK, {"image": "https://example.com/a.png"}]


def body(dialect: str, prompt: Any = PROMPT) -> dict[str, Any]:
    scheme = f"{dialect}+" if dialect else ""
    profile, _ = Profiles(f"p={scheme}https://example.com/v1", region="eu-west-1").of("m")
    messages = tuple(opening({"prompt": prompt}))
    return DIALECTS[dialect].body(body_of(a_request(messages=messages), "m", profile))


def content(dialect: str, prompt: Any = PROMPT) -> Any:
    (message,) = body(dialect, prompt)["messages"]
    return message["content"]


def test_chat_completions_get_data_urls() -> None:
    text, image, file = content("")
    assert text == {"type": "text", "text": ASK["text"]}
    assert image["image_url"]["url"] == f"data:image/png;base64,{PNG}"
    assert file["file"]["file_data"] == f"data:application/pdf;base64,{PDF}"


def test_anthropic_gets_blocks_with_their_source() -> None:
    text, image, file = content("anthropic")
    assert text == {"type": "text", "text": ASK["text"]}
    assert image == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    source = {"type": "base64", "media_type": "application/pdf", "data": PDF}
    assert file == {"type": "document", "source": source, "title": "bill (1).pdf"}
    (_, address) = content("anthropic", ADDRESS)
    assert address["source"] == {"type": "url", "url": "https://example.com/a.png"}


def test_bedrock_gets_bytes_and_a_name_in_its_letters() -> None:
    text, image, file = content("bedrock")
    assert text == {"text": ASK["text"]}
    assert image == {"image": {"format": "png", "source": {"bytes": PNG}}}
    assert file == {"document": {"name": "bill 1 -pdf", "format": "pdf", "source": {"bytes": PDF}}}
    (_, file) = content("bedrock", [ASK, {"file": PDF, "name": "§"}])
    assert file["document"]["name"] == "file"


def test_bedrock_takes_no_address(says: Says) -> None:
    with pytest.raises(StepFailure) as caught:
        content("bedrock", ADDRESS)
    assert (caught.value.code, caught.value.unsent) == ("validation_failed", True)
    says(str(caught.value))


def test_a_request_in_the_background_has_them_in_the_words_of_the_responses_api() -> None:
    made = background_body_of(a_request(messages=tuple(opening({"prompt": PROMPT}))), "m")
    assert made["input"][0]["content"] == [
        {"type": "input_text", "text": ASK["text"]},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "input_file", "filename": "bill (1).pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
    ]


@pytest.mark.parametrize(("status", "code"), [(400, "bad_request"), (404, "model_unavailable")])
def test_the_refusal_of_an_image_says_what_to_do(
    provider: Served, status: int, code: str, says: Says
) -> None:
    provider.script = lambda asked: Refusal(status, "x", "This model does not support image input.")
    adapter = adapter_of(provider.url)
    refused = failure(adapter, a_request(messages=tuple(opening({"prompt": PROMPT}))))
    assert refused.code == code
    says(refused.message)
    assert len(failure(adapter).message) < len(refused.message), "nothing is said where the prompt is text"
