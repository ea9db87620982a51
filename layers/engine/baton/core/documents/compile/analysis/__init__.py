"""Facts about a document for its checks: edges, loops, nodes that must run, and outputs that each node can
read.
"""
