"""What template.yaml declares: expanded, resolved, read as plain values, and made in the embedded AWS."""
