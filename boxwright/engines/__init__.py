"""The engines: from a deployment's settings to the command, the environment and what is wrong with its
options.
"""
