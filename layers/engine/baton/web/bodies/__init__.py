"""Models of request and answer bodies, one file for each subject."""
