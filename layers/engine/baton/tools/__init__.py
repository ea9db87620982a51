"""Tools: the decorator that makes one from a function, the registry, and how they are performed."""
