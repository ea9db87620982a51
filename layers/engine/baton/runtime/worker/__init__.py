"""The worker: from a message to the loop of one saga. No other part of the runtime imports it."""
