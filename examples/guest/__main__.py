"""Serves the page as a program: `python -m examples.guest`, with BATON_URL and BATON_TOKEN, or with both as a line of JSON on stdin."""

import json
import os
import sys

from examples.guest.page import Page
from examples.services.serve import options, serve


def main(arguments: list[str] | None = None) -> int:
    """Run the page; see `--help`."""
    chosen, page = options("dinner-page", {}, arguments), Page()
    if os.environ.get("BATON_URL") and os.environ.get("BATON_TOKEN"):
        page.learn(os.environ["BATON_URL"], os.environ["BATON_TOKEN"])

    def told(line: bytes) -> None:
        said = json.loads(line)
        page.learn(said["url"], said["token"])

    return serve("dinner-page", chosen, lambda _: page.app(), told)


if __name__ == "__main__":
    sys.exit(main())
