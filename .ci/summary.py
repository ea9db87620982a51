"""Closing line of `make test`: the counts of all tiers in one.

Reads the JUnit files that the tiers left; judges nothing, a failed tier has stopped the run before.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def main(folder: Path, seconds: str) -> int:
    """Print tests and seconds per tier, then the sum. Exit status 1 when any test failed."""
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    print()
    for report in sorted(folder.glob("*.xml")):
        for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314  files that pytest wrote a minute ago
            counts = {name: int(suite.get(name, "0")) for name in total}
            total = {name: total[name] + counts[name] for name in total}
            print(f"  {report.stem:<12} {counts['tests']:>6} tests  {float(suite.get('time', '0')):>7.1f} s")
    failed, skipped = total["failures"] + total["errors"], total["skipped"]
    passed = total["tests"] - failed - skipped
    print(f"\n{seconds} s\ntests: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
