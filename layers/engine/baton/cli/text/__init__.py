"""Text for people, from answers of the API and documents. Pure functions."""
