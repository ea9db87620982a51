"""Checks of a document, one file for each kind of mistake."""
