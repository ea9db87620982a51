"""Helper processes for plain functions with effects, which only the end of a process stops for certain.

pool.py is the worker's side. forker.py imports the app once, forks helpers, and kills them. wire.py is their
protocol. See docs/adr/0021-workers-run-plain-functions-with-effects-in-helper-processes.md.
"""
