"""A local run that keeps its data: what a later one finds, and that no two use it at once."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from baton.local.aws import keeping
from baton.local.processes import LocalRunError
from baton.local.run import LocalRun
from tests.kit.sentences import Says
from tests.local.project import RULE, client, put_events, until, write_project
from tests.local.test_stream_e2e import ONLY_STREAM, keys, put

pytestmark = pytest.mark.e2e
BUCKET = "  Things: {Type: AWS::S3::Bucket, Properties: {BucketName: things}}\n"


def test_tables_and_objects_outlive_a_run_that_keeps_them_and_the_stream_goes_on(tmp_path: Path) -> None:
    template = write_project(tmp_path / "project", RULE + BUCKET)

    def run() -> LocalRun:
        return LocalRun(template, switched_off=ONLY_STREAM, data=tmp_path / "kept")

    async def scenario() -> None:
        async with run() as first:
            await put(first, "x")
            client(first, "s3").put_object(Bucket="things", Key="a/b", Body=b"\xff\x00")
            with pytest.raises(LocalRunError, match="another local run keeps its data in"):
                async with run():
                    pass
        async with run() as second:
            key = {"pk": {"S": "x"}}
            found = client(second, "dynamodb").get_item(TableName=second.physical["Table"], Key=key)
            assert found["Item"] == key | {"blob": {"B": b"\xff"}}
            assert client(second, "s3").get_object(Bucket="things", Key="a/b")["Body"].read() == b"\xff\x00"
            await put(second, "a", {"do": "nothing"})
            await until(lambda: keys(second, 0) == ["a"])
            (put_again,) = await put_events(second, {})  # bus and rule are made anew
            await until(
                lambda: put_again["EventId"] in [record.event.get("id") for record in second.invocations]
            )
        assert not second.was_killed
        shutil.rmtree(tmp_path / "kept/state")  # as after a first run that was killed
        (tmp_path / "kept/lock").write_text("7\n")
        async with run() as third:
            assert third.was_killed
            assert client(third, "s3").get_object(Bucket="things", Key="a/b")["Body"].read() == b"\xff\x00"

    asyncio.run(scenario())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, says: Says) -> None:
    (tmp_path / "file").write_text("")
    with says.raised(LocalRunError), keeping(tmp_path / "file" / "data"):
        pass
