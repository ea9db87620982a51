"""The version of the engine and of its package: in a layer the engine is a folder, not a package."""

VERSION = "0.1.0"
