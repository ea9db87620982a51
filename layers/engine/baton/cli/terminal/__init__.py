"""Shared parts of the commands: options and arguments, streams, API access, and watching of sagas."""
