"""What is said to models, and what it costs: tokens, prices, messages. Pure; who calls them is in runtime/model_caller.py."""
