"""A returns desk: agents of the OpenAI Agents SDK, which run in a workflow function.

To run it with `baton up --app returns`, copy the folder into layers/app, and write `returns` for `examples.returns` in it.
"""
