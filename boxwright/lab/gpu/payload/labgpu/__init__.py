"""The simulated NVIDIA layer of a lab host: standard library only, Python 3.9."""
