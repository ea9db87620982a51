"""How people are told and answer: channels, links with tokens, and the rows of open questions."""
