"""Sizes of the built layers, and the refusal of more than Lambda unpacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from baton.shipping.contents import BuildFailed

BUILT: Final = Path(".aws-sam/build")
# Of a function's code and all of its layers, unzipped. The limit of 50 MB zipped is for direct uploads: sam uploads by S3.
LIMIT_MB: Final = 250 * 1024 * 1024 / 1e6
_NAMED: Final = 5


@dataclass(frozen=True)
class Size:
    """A built layer in MB, with its packages, the largest first."""

    layer: str
    total: float
    parts: Sequence[tuple[str, float]]


def read_sizes(built: Path) -> list[Size]:
    """Return the sizes of the layers in the folder of `sam build`. Raises `BuildFailed`."""
    found = [_size(folder) for folder in sorted(built.glob("*Layer"))]
    if not found:
        raise BuildFailed(f"{built} has no layers: build first, with `make build`.")
    return found


def _size(folder: Path) -> Size:
    parts = {path.name: _megabytes(path) for path in (folder / "python").iterdir()}
    largest = sorted(parts.items(), key=lambda part: -part[1])
    return Size(folder.name.removesuffix("Layer").lower(), sum(parts.values()), largest[:_NAMED])


def _megabytes(path: Path) -> float:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def report(sizes: Sequence[Size], limit_mb: float = LIMIT_MB) -> Iterator[str]:
    """Yield a line for each layer and for their sum. Raises `BuildFailed` above the limit."""
    for size in sizes:
        yield f"{size.layer:<10} {size.total:>7.1f} MB   {_shown(size.parts)}".rstrip()
    total = sum(size.total for size in sizes)
    if total > limit_mb:
        parts = sorted((p for s in sizes if s.layer != "engine" for p in s.parts), key=lambda part: -part[1])
        raise BuildFailed(
            f"The layers have {total:.1f} MB unzipped, and Lambda takes {limit_mb:.1f}. The largest of your"
            f" packages: {_shown(parts[:_NAMED])}. Take what no tool needs out of layers/app/requirements.txt, or"
            ' write `package = "image"` under [functions] in baton.toml: an image may have 10,000 MB.'
        )
    yield f"{'together':<10} {total:>7.1f} MB   of {limit_mb:.1f} that Lambda takes"


def _shown(parts: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {megabytes:.1f}" for name, megabytes in parts if megabytes >= 0.1)
