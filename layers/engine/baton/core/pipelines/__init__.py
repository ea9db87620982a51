"""Pipelines: what is to be done with tables, written as a list of steps. Pure: values in, values out.

pipeline.py reads and runs one, pipeline.py lists the primitives, and each family of them
has a file. base.py says how a step's fields are written; from that come the check, the
JSON Schema and the table in docs/tools.md. Requests are described here and sent elsewhere.
"""
