"""Which files of the core need no analysis, because the same text was covered in the same ways before.

To find all branches of the core, coverage parses each of its files: that takes as long as hundreds of tests. covered.json has
of each file that was covered a digest of its text and of the ways that the tests took through it. Where both are the same, the
analysis would find the same: no branch is left. Every other file is analysed.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coverage import Coverage

COVERED = Path(__file__).with_suffix(".json")
CORE = Path(__file__).parents[2] / "layers" / "engine" / "baton" / "core"


def _digests(measured: Coverage) -> dict[str, str]:
    """By the path of each file that was measured. What is left out of the analysis counts, and so does what analyses."""
    from coverage import __version__

    data = measured.get_data()
    left_out = [measured.get_option(f"report:{name}") for name in ("exclude_lines", "exclude_also")]
    how = repr((__version__, sys.version_info[:2], left_out)).encode()
    return {
        file: _digest(how, sorted({*(data.arcs(file) or ())}), file) for file in sorted(data.measured_files())
    }


def _digest(how: bytes, ways: list[tuple[int, int]], file: str) -> str:
    return sha256(how + repr(ways).encode() + Path(file).read_bytes()).hexdigest()[:16]


def unproven(measured: Coverage) -> list[str]:
    """The files that are to be analysed."""
    known: dict[str, str] = json.loads(COVERED.read_text("utf-8"))
    return [file for file, digest in _digests(measured).items() if known.get(_name(file)) != digest]


def keep(measured: Coverage) -> None:
    """Keep the digest of each file, if the analysis finds no branch left in any."""
    if measured.report(file=StringIO()) != 100:
        raise SystemExit("these tests do not take every branch of the core")
    kept = {_name(file): digest for file, digest in _digests(measured).items()}
    COVERED.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def _name(file: str) -> str:
    return str(Path(file).relative_to(CORE))
