"""Did it happen once: what the engine knows of tools, their keys, and the rows that they keep."""
