"""When is a workflow started by itself? The ticks of schedules (ticks.py), and what becomes of each (record.py)."""
