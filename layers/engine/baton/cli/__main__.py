"""`python -m baton.cli`: the command, if its script is not on the path."""

from baton.cli import main

main(prog_name="baton")
