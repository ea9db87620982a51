"""Steps: the order around an attempt, exactly-once effects, circuit breakers, and all that run at once."""
