"""Code that runs on simulated hosts, in place of hardware, kernel and driver."""
