"""Notices to people and their answers: channels, links with tokens, and the rows of open questions."""
