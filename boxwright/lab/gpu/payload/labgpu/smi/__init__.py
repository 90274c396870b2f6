"""The nvidia-smi command of a simulated driver."""
