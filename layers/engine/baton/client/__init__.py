"""A running Baton as Python calls: where it is, as whom, its routes, and how errors are told.
Of the commands and the demo.
"""
