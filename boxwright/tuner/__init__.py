"""The better setting of a box: what to try, what the measurements say, what to try next."""
