"""A project depends on the Baton it was made with, named as that one was named to its installer."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from baton.scaffold.make import requirement_of


def installed(folder: Path, direct: Any = None) -> Distribution:
    info = folder / "baton-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: baton\nVersion: 1.2.3\n")
    if direct is not None:
        (info / "direct_url.json").write_text(json.dumps(direct))
    return PathDistribution(info)


REPOSITORY = "https://git.example/baton.git"


@pytest.mark.parametrize(
    ("direct", "line"),
    [
        (None, "baton-sagas[local]==1.2.3"),
        ({"url": "file:///src/baton", "dir_info": {"editable": True}}, "-e /src/baton[local]"),
        ({"url": "file:///my%20src/baton", "dir_info": {"editable": True}}, "-e '/my src/baton[local]'"),
        ({"url": "file:///src/baton", "dir_info": {}}, "baton-sagas[local] @ file:///src/baton"),
        (
            {"url": "file:///w/baton-1.2.3-py3-none-any.whl", "archive_info": {"hash": "sha256=00"}},
            "baton-sagas[local] @ file:///w/baton-1.2.3-py3-none-any.whl",
        ),
        (
            {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "main"}},
            f"baton-sagas[local] @ git+{REPOSITORY}@abc",
        ),
        (
            {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": "abc"}, "subdirectory": "py"},
            f"baton-sagas[local] @ git+{REPOSITORY}@abc#subdirectory=py",
        ),
    ],
    ids=["index", "editable", "editable with a space", "folder", "wheel", "git", "below a repository"],
)
def test_the_requirement_names_what_was_installed(tmp_path: Path, direct: Any, line: str) -> None:
    assert requirement_of(installed(tmp_path, direct), "local") == line
