"""Money of sagas: accounts, reservations, and the amounts held while a request runs."""
