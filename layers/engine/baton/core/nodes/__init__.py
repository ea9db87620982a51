"""What does a kind of node do? One file for each, behind the protocol in base.py and the list in registry.py.

A kind says what is to happen, as data.
What follows from that is decided in core/decide/, which does not know the kinds.
"""
