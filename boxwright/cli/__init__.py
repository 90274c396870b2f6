"""What tasks.py calls: looking hosts up, running playbooks, drawing results."""
