"""A project of one's own: what `baton new` makes, and how it comes about.

The files that it shares with Baton's own deployment lie there.
Nothing here is shipped to Lambda.
Talking to the terminal is in cli/machine/local.py.
"""
