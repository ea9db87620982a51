"""AWS's public conformance suite, run against `baton.compat.aws_durable`."""
