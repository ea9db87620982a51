"""One attempt of a step: what it gets, what it may spend, what became of it."""
