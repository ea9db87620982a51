"""Project creation for `baton new`.

The files that a project shares with Baton's own deployment are in files/. Lambda does not need this package.
The dialogue with the user is in cli/machine/local.py.
"""
