"""What is said to models, and what it costs: tokens, prices, messages.
Pure; who calls them is in runtime/models/model_caller.py.
"""
