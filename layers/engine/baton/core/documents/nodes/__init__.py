"""How each kind of node is written in a document: one file a kind,
behind one protocol (base.py) and one list (registry.py).
"""
