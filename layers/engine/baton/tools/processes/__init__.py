"""Helper processes for plain functions with effects, which only the end of a process stops for certain.

pool.py is the worker's side. forker.py is a process that imports the app once, forks helpers
off itself, and kills them. forker.py is what runs in a helper. wire.py is what they say to
each other. See docs/adr/0021-workers-run-plain-functions-with-effects-in-helper-processes.md.
"""
