"""What was written: documents as text, their models, their schema, and the compiler (compile/).

Only what reads documents imports this room: it needs pydantic.
"""
