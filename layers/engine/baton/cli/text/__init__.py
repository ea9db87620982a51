"""What a person reads: answers of the API and documents in, lines of text out. Pure."""
