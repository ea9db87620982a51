"""A support desk: a front desk that talks with a customer for days, and a delegate that decides about refunds.

The document is `support-desk.yaml`, the tools are in `tools.py` and at the MCP server of `parcels.py`, which
`mcp.lock.json` pins. `python -m examples.support_desk` runs one conversation whose workers are killed on the way.
To run it with `baton up --app support_desk --parameter HttpHosts=127.0.0.1`, copy the folder into layers/app and
start the server.
"""
