"""A project of one's own: its baton.toml, the deployment that is made of it, and the move to another Baton.

Lambda does not need this package: what a function is told stands in its variables.
"""
