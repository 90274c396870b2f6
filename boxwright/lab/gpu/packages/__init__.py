"""What the lab's package repositories hold: the vendor's names and dependencies around simulated contents."""
