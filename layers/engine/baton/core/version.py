"""The version of the engine, which pyproject.toml repeats: in a layer the engine is a folder, not a package."""

VERSION = "0.1.0"
