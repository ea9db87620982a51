"""Your sagas: every module of this package is imported for its tools; its `*.yaml` are its workflows.

It ships with one example, an evening out, which you replace by what you want done.
"""
