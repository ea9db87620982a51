"""What callers and operators change, one file for each thing that they have to do with."""
