"""Your sagas: every module of this package is imported for its tools; its `*.yaml` are its workflows.

Belongs here: tools and workflow documents of one application. Does not belong here: anything of the
engine. It ships with one example, an evening out, which you replace by what you want done.
"""
