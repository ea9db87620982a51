"""Folds: the change of a state by each kind of event, and the parts that a fork keeps."""
