"""A support desk: a front desk that talks with a customer for days, and a delegate that decides about refunds.

The document is `support-desk.yaml`, the tools are in `tools.py`, and `python -m examples.support_desk` runs one conversation whose
workers are killed on the way. To run it with `baton up --app support_desk`, copy the folder into layers/app.
"""
