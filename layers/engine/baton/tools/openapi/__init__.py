"""OpenAPI: what a deployment names, what a description says of an
operation, and what a request of it looks like.

Pure, and imported by the first call of `std.openapi` only, but for description.py.
What is sent is in standard/openapi.py.
"""
