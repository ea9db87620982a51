"""From entries to a state: what each kind of event changes in it, and what a fork keeps."""
