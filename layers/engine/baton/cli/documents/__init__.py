"""Workflow documents on this machine: search, compilation, checks, drawings and registration."""
