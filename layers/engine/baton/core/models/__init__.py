"""Messages to models, tokens and prices.
Pure; runtime/models/model_caller.py calls the models.
"""
