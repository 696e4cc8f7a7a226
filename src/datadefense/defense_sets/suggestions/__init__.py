"""Suggestions: candidates for a defense set, made by a server that has seen no poison."""
