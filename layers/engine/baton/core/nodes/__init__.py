"""The kinds of node: one file for each, behind the protocol in base.py and the list in registry.py.

A kind returns its next action as data. The consequences are decided in core/decide/, which does not know the
kinds.
"""
