"""Lambda: the processes of each function, their environment, and the APIs by which they are invoked."""
