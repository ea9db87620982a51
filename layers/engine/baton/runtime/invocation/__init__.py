"""What every invocation has: its time, its calls to stores and their repetition, its metrics."""
