"""A box seen over time: what Prometheus asks, what its dashboards show."""
