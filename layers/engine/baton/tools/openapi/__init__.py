"""OpenAPI: descriptions, and requests of operations. Pure; standard/openapi.py sends them."""
