"""What `baton up` takes for a change of the application; that it takes it up is in test_local_commands.py."""

from __future__ import annotations

import asyncio
from pathlib import Path

from baton.cli.machine.running import changed_files, changes, files_of
from tests.kit.patience import PATIENCE_S


def test_files_that_are_new_gone_or_other_have_changed_and_what_programs_leave_has_not(
    tmp_path: Path,
) -> None:
    for name in ("same.py", "other.py", "gone.yaml"):
        (tmp_path / name).write_text("1")
    before = files_of([tmp_path, tmp_path / "nowhere"])
    (tmp_path / "other.py").write_text("22")
    (tmp_path / "gone.yaml").unlink()
    (tmp_path / "deep").mkdir()
    for name in ("deep/new.yaml", ".hidden", "x.py~", "#x.py#", "x.pyc", "same.tmp"):
        (tmp_path / name).write_text("1")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/a.py").write_text("1")
    names = [str(path.relative_to(tmp_path)) for path in changed_files(before, files_of([tmp_path]))]
    assert names == ["deep/new.yaml", "gone.yaml", "other.py"]


def test_changes_are_told_once_all_have_been_written(tmp_path: Path) -> None:
    async def first() -> list[Path]:
        told = changes([tmp_path], every_s=0)
        waiting = asyncio.ensure_future(anext(told))
        await asyncio.sleep(0)
        for name in ("a", "b"):
            (tmp_path / name).write_text("1")
        found = await asyncio.wait_for(waiting, PATIENCE_S)
        await told.aclose()  # type: ignore[attr-defined]  # it is a generator
        return found

    assert asyncio.run(first()) == [tmp_path / "a", tmp_path / "b"]
