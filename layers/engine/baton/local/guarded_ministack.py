"""Program of the embedded AWS: MiniStack, which answers any page of any site, behind the guard in
processes.py.
"""

from __future__ import annotations

import os

from ministack import app

from baton.local.processes import guarded

if __name__ == "__main__":
    app.app = guarded(app.app, int(os.environ["GATEWAY_PORT"]), programs_only=True)
    app.main()
