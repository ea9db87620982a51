"""The models of a deployment: profiles and credentials, prices, and the client of the chat completions API.

What is imported before a model is called is small: profiles.py and deployed.py. A test keeps it so.
"""
