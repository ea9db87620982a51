"""The local Lambda: runs what template.yaml declares, on one machine, without docker or an account.

The way in is `baton.local.run.LocalRun`. Nothing here is shipped to AWS, and nothing here knows sagas.
"""
