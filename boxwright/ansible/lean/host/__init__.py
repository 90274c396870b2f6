"""What a host runs around a module: standard library only, Python 3.9."""
