"""Attackers: what they train on, how they train, and when they come."""
