"""The simulated NVIDIA layer of the lab: hardware of a host, and a signed package repository as the vendor's."""
