"""Implementations of the ports, one technology per file or folder.

Nothing here decides anything about a saga, and nothing here imports the runtime.
"""
