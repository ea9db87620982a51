"""The commands that talk to a deployment, one file for each thing that they are about."""
