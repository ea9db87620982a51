"""Python calls to a running Baton for the commands and the demo: connection, routes, and error messages."""
