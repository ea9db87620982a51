"""The channels by which people and their programs are told of notices:
a file for each, and one for what they say.

That each notice is sent once, and what becomes of a channel that fails,
is the business of runtime/people/notices.py.
"""
