"""Data sets: what clients, server and attackers hold."""
