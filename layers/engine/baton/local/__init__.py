"""The local Lambda: it runs the resources of template.yaml on one machine, without docker or an account.

The entry point is `baton.local.run.LocalRun`. AWS does not need this package, and the package knows no sagas.
"""
