"""Kinds of nodes as documents write them: one file a kind.

Their protocol is in base.py, their list in registry.py.
"""
