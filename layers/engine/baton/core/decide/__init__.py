"""Decisions: from a program, a state and the time to the events of the next entry.

Nothing is performed here. The runtime reads a decision and acts.
"""
