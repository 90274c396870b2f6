"""Texts in, values out. Standard library and Python 3.9: modules on the hosts import these files too."""
