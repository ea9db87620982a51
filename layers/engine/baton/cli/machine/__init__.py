"""Commands that run Baton on this machine: up, demo, failover, new."""
