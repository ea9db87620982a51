"""How a saga begins: the newest version of its workflow, its quota, its first entry."""
