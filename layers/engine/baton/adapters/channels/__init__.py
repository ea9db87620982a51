"""Channels that notify people and programs. runtime/people/notices.py repeats notices."""
