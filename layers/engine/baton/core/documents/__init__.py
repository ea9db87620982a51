"""Documents: their text, models and schema, and the compiler (compile/).

Only code that reads documents imports this package: it needs pydantic.
"""
