"""Workflow documents on this machine: found, compiled, checked, drawn and registered."""
