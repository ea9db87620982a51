"""What starts sagas without a caller: schedules and events."""
