"""A project of one's own: what `baton new` makes, and how it comes about.

Belongs here: the files of a new project, as far as they are not those of Baton's own deployment, and the
making. Does not belong here: anything that is shipped to Lambda; talking to the terminal (cli/new.py).
"""
