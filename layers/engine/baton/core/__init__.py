"""The pure core: definitions, graphs, events, state, and the functions between them.

Nothing in this package knows a clock, a network, randomness, the environment or AWS.
"""
