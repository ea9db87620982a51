"""The worker: what a message comes to, and the loop of one saga. Nothing else of the runtime knows of it."""
