"""The version of the engine. pyproject.toml repeats it: in a layer the engine is a folder, not a package."""

VERSION = "0.1.0"
