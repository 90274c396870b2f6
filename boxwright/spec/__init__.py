"""Declarations: what a person writes in an inventory, typed, checked and located."""
