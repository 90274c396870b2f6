"""The simulated NVIDIA layer of the lab: a host's hardware, and package repositories as the vendor's."""
