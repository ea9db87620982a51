"""What can be wrong with a document, one file for each kind of mistake."""
