"""Contexts of other systems for long workflows, over workflow functions. A saga that uses none imports none of it."""
