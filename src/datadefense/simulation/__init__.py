"""Federations in one process: clients, attackers and the rounds between them."""
