"""Your sagas. Every module of this package is imported for its tools, and its `*.yaml` are its workflows.

The package contains one example, an evening out. Replace it with your own sagas.
"""
