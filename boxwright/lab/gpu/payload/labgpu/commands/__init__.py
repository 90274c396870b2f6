"""Programs that a lab host has in place of those that would talk to the real kernel."""
