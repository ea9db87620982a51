"""The performers: one file for each command of core/decide/commands.py."""
