"""What the core asks for, carried out: one file for each command of core/decide/commands.py."""
