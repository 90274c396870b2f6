"""Boxwright: from a bare Linux box with NVIDIA cards to a health-checked model server."""

__version__ = "0.1.0"
