"""Turns of agents: requests to a model, its answers, and the stored transcript."""
