"""Objects that requests and workers work with: the engine's parts, one request, one run of a saga."""
