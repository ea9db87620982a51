"""No circle of files and none of folders: what is below can be read, tested and replaced without what is above.

What a circle is says circles.py.
"""

from __future__ import annotations

from pathlib import Path

from tests.architecture.circles import circles, file_needs, folder_needs

ENGINE = Path(__file__).parents[2] / "layers/engine/baton"


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles(file_needs(ENGINE)) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    assert circles(folder_needs(ENGINE)) == []


def planted(package: Path, sources: dict[str, str]) -> Path:
    """A package of these files, by their paths without the suffix."""
    for name, source in sources.items():
        file = package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source + "\n")
    return package


def test_a_circle_of_files_is_found_wherever_its_imports_stand(tmp_path: Path) -> None:
    package = planted(
        tmp_path / "baton",
        {
            "core/fold": "from baton.core import state",
            "core/state": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from baton.core.lost import Lost",
            "core/lost": "def f():\n    import baton.core.fold",
            "core/money": "from baton.core.fold import fold",
        },
    )
    assert circles(file_needs(package)) == [{"baton.core.fold", "baton.core.state", "baton.core.lost"}]
    assert circles(folder_needs(package)) == []


def test_a_circle_of_folders_is_found_where_no_files_make_one(tmp_path: Path) -> None:
    package = planted(
        tmp_path / "baton",
        {
            "core/shape": "from baton.core.failures.ladder import Way",
            "core/failures/ladder": "from baton.core.limits import Limits",
            "core/limits": "",
            "core/keys/author": "",
            "core/toolspec": "from baton.core.keys.author import Key",
        },
    )
    assert circles(file_needs(package)) == []
    assert circles(folder_needs(package)) == [{"core", "core/failures"}]


def test_a_module_right_under_the_package_is_a_room_of_its_own(tmp_path: Path) -> None:
    package = planted(
        tmp_path / "baton",
        {
            "__init__": "from baton.core import version",
            "errors": "",
            "wiring": "from baton.core.fold import fold",
            "core/fold": "from baton.errors import UserError",
            "core/version": "",
        },
    )
    assert circles(folder_needs(package)) == []
