"""The depot's servers: a model hub and a file server. Standard library only.

They run inside the depot container, as `python3 -m servers.hub` and `python3 -m servers.www` with the folder
above this one on PYTHONPATH.
"""
