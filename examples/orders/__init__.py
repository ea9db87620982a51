"""An online shop: its order is a workflow that is one Python function.

Reading order: fulfilment, tools, shop. To run it with `baton up --app orders`, copy the folder into layers/app, and write
`orders` for `examples.orders` in it.
"""
