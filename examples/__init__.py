"""Things that stand outside Baton: the services that the dinner sagas call.

Nothing here imports the engine, so that what these programs count is a second opinion.
"""
