"""Sequencing over ports: the protocols of a saga's life. No technology, no behaviour of the graph."""
