"""Requests to models, as attempts of steps: what a model is told, the money for it, and what its answer comes to.

Whether a turn is due, and what becomes of the calls that it asks for, is decided in core/nodes/agent.py. Loaded with the
first request.
"""
