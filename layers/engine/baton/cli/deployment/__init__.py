"""The commands that talk to a deployment, one file for each subject."""
