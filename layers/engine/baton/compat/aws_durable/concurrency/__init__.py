"""Branches and their results."""
