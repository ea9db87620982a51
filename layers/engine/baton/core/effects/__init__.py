"""Effects that happen once: the engine's knowledge of tools, their keys, and the rows that they keep."""
