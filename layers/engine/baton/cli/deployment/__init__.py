"""Commands that use a deployment, one file for each subject."""
