"""The two outside services of the dinner example: table-stack and open-delivery.

Each is a program of its own: `python -m examples.services.table_stack --port 8101`, run from the
root of the repository. What they share is in `books` (what happened), `desk` (HTTP) and `serve`.
"""
