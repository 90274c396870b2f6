"""What a published release of an engine takes: read from its package's source, which is never run."""
