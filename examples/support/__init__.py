"""A support agent that was written for pydantic-ai, durable in a workflow function.

To run it with `baton up --app support`, copy the folder into layers/app, write `support` for `examples.support` in it, and
`pydantic-ai-slim[openai,mcp]` into layers/app/requirements.txt.
"""
