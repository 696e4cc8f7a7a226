"""Runs: a configuration, the federation that it makes, its rounds on disk, its summary."""
