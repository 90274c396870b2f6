"""What the depot holds: a model hub, models, the engine image, wheels."""
