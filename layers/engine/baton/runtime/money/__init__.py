"""What may be spent: accounts, reservations, and what is held while a request runs."""
