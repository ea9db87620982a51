"""Channels that send notices to people and their programs: a file for each, and one for the texts.

Repetition and failing channels are the subject of runtime/people/notices.py.
"""
