"""Builds of the worker function on Lambda, each a version with an alias. Loaded with the first saga that needs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from baton.adapters.aws import Missing, translated
from baton.errors import CodeGone, StoreUnavailable
from baton.ports import CodeBuild, Message, Offload

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

_ALIAS = "build-"  # as template.yaml names them
_BUILD = "BATON_BUILD"


def alias_of(build: str) -> str:
    """Return the name of the alias of a build, in which a dot may not stand."""
    return _ALIAS + build.replace(".", "-")


class LambdaBuilds:
    """`Builds` of one function. `client`: one that waits as long as an invocation lasts."""

    def __init__(self, client: LambdaClient, function: str, offload: Offload) -> None:
        self._client = client
        self._function = function
        self._offload = offload

    async def run(self, build: str, messages: Sequence[Message], until: int) -> Sequence[int]:
        return await self._offload(self._run, build, messages, until)

    def _run(self, build: str, messages: Sequence[Message], until: int) -> Sequence[int]:
        payload = msgspec.json.encode({"wakes": list(messages), "until": until, "build": build})
        try:
            with translated():
                answer = self._client.invoke(
                    FunctionName=self._function, Qualifier=alias_of(build), Payload=payload
                )
        except Missing as error:
            raise CodeGone(f"build {build} is not there") from error
        said = answer["Payload"].read()
        if answer.get("FunctionError"):
            raise StoreUnavailable(f"build {build} has failed: {said[:500].decode(errors='replace')}")
        failed = msgspec.json.decode(said)["batchItemFailures"]
        return [int(one["itemIdentifier"]) for one in failed]


class LambdaDeployedBuilds:
    """`DeployedBuilds` of one function."""

    def __init__(self, client: LambdaClient, function: str) -> None:
        self._client = client
        self._function = function

    def variables(self) -> Mapping[str, str]:
        """Return the variables of the worker as it is deployed."""
        with translated():
            return self._client.get_function_configuration(FunctionName=self._function)["Environment"][
                "Variables"
            ]

    def listed(self) -> tuple[Sequence[CodeBuild], int]:
        function = self._function
        with translated():
            newest = self._client.get_function_configuration(FunctionName=function)
            pages = self._client.get_paginator("list_aliases").paginate(FunctionName=function)
            aliases = [one for page in pages for one in page["Aliases"] if one["Name"].startswith(_ALIAS)]
            aliases.sort(key=lambda one: int(one["FunctionVersion"]))
        current = newest["Environment"]["Variables"].get(_BUILD, "")
        builds = [
            CodeBuild(
                build=one["Name"].removeprefix(_ALIAS).replace("-", "."),
                version=one["FunctionVersion"],
                is_current=one["Name"] == alias_of(current),
            )
            for one in aliases
        ]
        return builds, round(datetime.fromisoformat(newest["LastModified"]).timestamp() * 1_000)

    def delete(self, build: CodeBuild) -> None:
        function = self._function
        with translated():
            self._client.delete_alias(FunctionName=function, Name=alias_of(build.build))
        try:
            with translated():
                self._client.delete_function(FunctionName=function, Qualifier=build.version)
        except Missing:
            return
