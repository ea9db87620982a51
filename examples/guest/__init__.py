"""A page for the guest of the example: asks for an evening in words, and shows what becomes of it.

It knows the public HTTP API of Baton and nothing else of it. Reading order: page, story, warming, api.
"""
