"""What callers and operators change, one file for each subject."""
