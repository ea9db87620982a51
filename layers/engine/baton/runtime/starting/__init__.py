"""Start of a saga: the newest version of its workflow, its quota, its first entry."""
