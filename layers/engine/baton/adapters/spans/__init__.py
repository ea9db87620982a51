"""Spans of requests to models and of their calls: what is noted (`traced.py`), and how it is sent (`otlp.py`).

Nothing here is imported where spans are sent nowhere.
"""
