"""The turns of agents: what a model is sent, what it answers, and what is kept of it."""
