"""The stores in memory: the same ports without AWS, for tests and for a deployment in one process."""
