"""Processes and servers of a local run: started, listened to, and none of them left behind."""
