"""The HTTP API: routes, identities and problems. No use cases (runtime/service.py) and no AWS."""
