"""Contexts of other systems, over workflow functions. A saga that uses none imports none of it."""
