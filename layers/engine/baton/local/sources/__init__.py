"""What invokes functions: queues, streams, schedules and the event bus, with what becomes of their failures."""
