"""Implementations of the ports, one technology per file.

Nothing here decides anything about a saga, and nothing here imports the runtime.
"""
