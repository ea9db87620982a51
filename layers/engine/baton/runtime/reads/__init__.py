"""What the API shows, one file for each view."""
