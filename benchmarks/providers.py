"""Trial of forms with real providers: `make providers` asks those whose keys are set, with a small model of each.

A key is BATON_MODEL_KEY_<PROVIDER>, or OPENAI_API_KEY; Bedrock is asked with the credentials of the shell. A model of one's own
choice is BATON_MODEL_<PROVIDER>. It costs some cents. The table is that of docs/models.md.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from baton.adapters.models.deployed import DeployedModels
from baton.adapters.models.profiles import PROVIDERS
from baton.core.models.messages import opening, read_answer, turn
from baton.ports import StepFailure
from baton.ports.models import CALLS, LENGTH, Draft, ModelAnswer, ModelRequest, ToolOffer
from baton.testing.models import real_models

MODELS = {
    "anthropic": "claude-haiku-4-5",
    "bedrock": "amazon.nova-lite-v1:0",
    "deepseek": "deepseek-chat",
    "gemini": "gemini-2.5-flash",
    "groq": "openai/gpt-oss-20b",
    "mistral": "mistral-small-latest",
    "openai": "gpt-5-mini",
    "openrouter": "openai/gpt-5-mini",
}
LOOK = ToolOffer(
    name="weather",
    description="Tells the weather in one city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TWO = {"role": "user", "content": "How is the weather in Rome and in Oslo? Ask for both cities at once."}
SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
RED = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg=="
"""A red square."""


class Tried:
    """One provider, and what was tried with it."""

    def __init__(self, models: DeployedModels, model: str) -> None:
        self._models, self._model = models, model

    async def _ask(self, *messages: dict[str, Any], **fields: Any) -> ModelAnswer:
        given = {"model": self._model, "messages": messages, "most_output": 1_000, **fields}
        return await self._models.answer(ModelRequest(**given))

    async def text(self) -> bool:
        draft = Draft()
        answer = await self._ask({"role": "user", "content": "Say hello."}, draft=draft)
        return bool(answer.text) and draft.read() == answer.text

    async def usage(self) -> bool:
        answer = await self._ask({"role": "user", "content": "Say hello."}, most_input=900_000)
        return 0 < answer.usage.input < 1_000 and 0 < answer.usage.output < 1_000

    async def calls(self) -> bool:
        answer = await self._ask(TWO, tools=(LOOK,))
        return answer.finish == CALLS and {call.name for call in answer.calls} == {LOOK.name}

    async def back(self) -> bool:
        """Calls, their results, a message of the user behind them, and an answer."""
        first = await self._ask(TWO, tools=(LOOK,))
        calls = [{"tool": call.name, "arguments": read_answer(call.arguments)} for call in first.calls]
        said = {"text": first.text, "calls": calls, "echo": first.echo}
        ids = [f"t1-{number}" for number in range(len(calls))]
        messages = turn(ids, said, ["sunny"] * len(ids), {LOOK.name: LOOK.name})
        more = {"role": "user", "content": "Answer in one sentence."}
        return bool((await self._ask(TWO, *messages, more, tools=(LOOK,))).text)

    async def schema(self) -> bool:
        answer = await self._ask({"role": "user", "content": "What is 2 + 3?"}, schema=SCHEMA)
        return bool(read_answer(answer.text) == {"sum": 5})

    async def image(self) -> bool:
        prompt = [{"text": "Which colour is this? Answer with one word."}, {"image": RED}]
        answer = await self._ask(*opening({"prompt": prompt}))
        return "red" in answer.text.lower()

    async def thinking(self) -> bool:
        answer = await self._ask(
            {"role": "user", "content": "Is 391 a prime?"}, thinking="low", most_output=3_000
        )
        return bool(answer.text)

    async def cut(self) -> bool:
        answer = await self._ask(
            {"role": "user", "content": "Count to a thousand, in words."}, most_output=40
        )
        return answer.finish == LENGTH

    async def refused(self) -> bool:
        try:
            await self._models.answer(
                ModelRequest(
                    model=f"{self._model}-no-such-model", messages=({"role": "user", "content": "x"},)
                )
            )
        except StepFailure as failure:
            return failure.code in ("model_unavailable", "bad_request", "forbidden")
        return False


FORMS: dict[str, Callable[[Tried], Awaitable[bool]]] = {
    "text as it comes": Tried.text,
    "usage": Tried.usage,
    "calls of tools": Tried.calls,
    "a second turn": Tried.back,
    "an answer by schema": Tried.schema,
    "an image": Tried.image,
    "thinking": Tried.thinking,
    "an end by the limit": Tried.cut,
    "a model that is not there": Tried.refused,
}


async def shown(form: Callable[[Tried], Awaitable[bool]], tried: Tried) -> str:
    try:
        return "yes" if await form(tried) else "no"
    except (StepFailure, ValueError) as error:
        return f"{getattr(error, 'code', 'ValueError')}: {str(error)[:80]}".replace("|", "/")


def has_key(name: str) -> bool:
    if name == "bedrock":
        return bool(os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_PROFILE"))
    return bool(
        os.environ.get(f"BATON_MODEL_KEY_{name.upper()}")
        or (name == "openai" and os.environ.get("OPENAI_API_KEY"))
    )


async def table(names: list[str]) -> list[str]:
    os.environ["BATON_MODEL_PROFILES"] = " ".join(names)
    models = real_models()
    rows = [f"| form | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    tried = [
        Tried(models, f"{one}/{os.environ.get(f'BATON_MODEL_{one.upper()}', MODELS[one])}") for one in names
    ]
    for name, form in FORMS.items():
        rows.append(f"| {name} | {' | '.join([await shown(form, one) for one in tried])} |")
    await models.aclose()
    return rows


def main(only: list[str]) -> int:
    names = [name for name in only or PROVIDERS if has_key(name)]
    if not names:
        print(f"no key is set: BATON_MODEL_KEY_<PROVIDER> for one of {', '.join(PROVIDERS)}", file=sys.stderr)
        return 1
    print("\n".join(asyncio.run(table(names))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
