"""How long tests of real processes wait for what must happen."""

from __future__ import annotations

# Nothing may fail because the machine is busy: this only ends what would never end.
PATIENCE_S = 240
