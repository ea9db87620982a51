"""Resources of every invocation: its time, its calls to stores and their repetition, its metrics."""
