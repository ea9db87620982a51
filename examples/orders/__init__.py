"""An online shop: its order is a workflow that is one Python function.

Reading order: fulfilment, tools, shop. Try it: `baton up --app examples.orders`.
"""
