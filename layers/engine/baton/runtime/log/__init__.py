"""A saga's log and its lease: loading, appending, taking and releasing."""
