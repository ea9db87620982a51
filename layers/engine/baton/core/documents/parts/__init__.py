"""Parts of the models of documents: types of fields, and parts of a node with a shape of their own."""
