"""The HTTP API: routes, identities and problems. No use cases (runtime/requests/service.py) and no AWS."""
