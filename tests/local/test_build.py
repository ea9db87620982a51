"""What tells the code of a local run from any other, for sagas that wait to be mended."""

from __future__ import annotations

import os
from pathlib import Path

from baton.local.functions import BUILD, build_of, of_process, shared_by
from baton.local.stack import Function


def of(function: Path, layer: Path, **environment: str) -> dict[str, str]:
    made = Function(
        logical_id="F",
        name="f",
        arn="a",
        handler="h",
        code=function,
        layers=(),
        timeout_s=1,
        memory_mb=128,
        runtime="python3.13",
        environment=environment,
        deployed=(layer,),
    )
    return of_process(made, {}, {})


def test_it_changes_with_a_file_of_a_layer_and_with_nothing_else(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    (layer / "sagas" / "__pycache__").mkdir(parents=True)
    (layer / "sagas" / "tools.py").write_text("a = 1")
    os.utime(layer / "sagas" / "tools.py", (5, 5))
    assert build_of([layer]) == "5000"
    (layer / "sagas" / "__pycache__" / "tools.pyc").write_text("")
    assert build_of([layer]) == build_of([layer, tmp_path / "layer"]) == "5000"
    assert build_of([]) == "0"
    os.utime(layer / "sagas" / "tools.py", (7, 7))
    assert of(tmp_path, layer, BATON_BUILD="1.1")[BUILD] == "7000", "of a process that starts now"
    assert BUILD not in of(tmp_path, layer)


def test_what_all_functions_have_on_their_path_is_shared_and_the_engine_where_it_is_used() -> None:
    alone = shared_by([{"PYTHONPATH": "app:engine"}, {"PYTHONPATH": "engine"}])
    assert (alone.path, alone.modules) == ("engine", ())
    assert (
        "baton.wiring" in shared_by([{"PYTHONPATH": "app", "BATON_TABLE": "t"}, {"PYTHONPATH": ""}]).modules
    )
