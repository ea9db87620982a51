"""Implementations of the ports, one technology per file or folder. They decide nothing about a saga."""
