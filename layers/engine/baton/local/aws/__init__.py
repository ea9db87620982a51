"""The embedded AWS: its process, its clients, the directory that keeps it."""
