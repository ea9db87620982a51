"""What the models of documents are made of: types of fields, and the
parts of a node that have a shape of their own.
"""
