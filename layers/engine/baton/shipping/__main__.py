"""`python -m baton.shipping engine|packages|app FOLDER`, called by a layer's Makefile.

`image` puts all layers together beside a Dockerfile, `htmx` fetches the script of the console, and `sizes`
prints the sizes of the built layers.

Messages go to standard output, because `sam build` shows no other output of a successful build.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import baton
from baton.shipping import contents
from baton.shipping.bytecode import WAYS, Bytecode, compile_layer
from baton.shipping.contents import BuildFailed, build_app, build_engine, build_packages
from baton.shipping.sizes import BUILT, read_sizes, report

# In the order in which they are put over each other.
LAYERS: Mapping[str, Callable[[Path, Path], None]] = MappingProxyType(
    {"engine": lambda _, target: build_engine(target), "packages": build_packages, "app": build_app}
)
NO_BYTECODE = """\
warning: no .pyc files in this layer, so every cold start compiles what it imports (boto3 alone: half a second).
{tried}
To mend it, install one of: Python 3.13 (python3.13 on the PATH, or `uv python install 3.13`); Node.js with npm."""


def main(arguments: list[str] | None = None) -> int:
    """Build one layer into FOLDER, as `sam build` requires. Exit status 1 with the reason on stderr."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.folder is None and given.layer not in ("htmx", "sizes"):
        parser.error(f"say where the {given.layer} layer goes: FOLDER")
    try:
        if given.layer == "htmx":
            contents.put(given.folder or Path(baton.__file__).parent)
        elif given.layer == "sizes":
            for line in report(read_sizes(given.folder or BUILT)):
                print(line, flush=True)
        elif given.layer != "image":
            _build([given.layer], given.source, given.folder / "python", given.compile_with)
        elif (given.folder / "Dockerfile").is_file():
            target = given.folder / "image/python"
            shutil.rmtree(target, ignore_errors=True)
            _build(list(LAYERS), given.source / "layers/app", target, given.compile_with)
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _build(layers: Sequence[str], source: Path, target: Path, compile_with: str) -> None:
    """Build layers into one folder. Raises `BuildFailed`."""
    for layer in layers:
        LAYERS[layer](source, target)
    done = compile_layer(target, compile_with)
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file()) / 1e6
    name = "image" if len(layers) > 1 else f"{layers[0]} layer"
    print(f"{name}: {size:.1f} MB; {_describe(done)}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m baton.shipping", description="Builds a layer for Lambda."
    )
    parser.add_argument("layer", choices=[*LAYERS, "image", "htmx", "sizes"])
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        help="where `sam build` expects it (ARTIFACTS_DIR); for htmx: the package `baton`, by default the one that runs; for sizes:"
        " the folder of `sam build`",
    )
    parser.add_argument(
        "--source", type=Path, default=Path(), help="folder of the application; the current one by default"
    )
    parser.add_argument(
        "--compile-with",
        choices=["any", "none", *WAYS],
        default="any",
        help="how to come to a Python 3.13 for bytecode; by default the first way that works",
    )
    return parser


def _describe(done: Bytecode) -> str:
    if not done.sources:
        return "no Python in it"
    if not done.by:
        reasons = "\n".join(f"  {way}: {reason}" for way, reason in done.tried)
        return NO_BYTECODE.format(tried=reasons or "  (asked for by --compile-with none)")
    text = f"bytecode of {done.sources - len(done.broken)} files by {done.by}"
    if done.broken:
        text += f"\nwarning: no bytecode for what Python 3.13 cannot compile: {', '.join(done.broken)}"
    return text


if __name__ == "__main__":
    sys.exit(main())
