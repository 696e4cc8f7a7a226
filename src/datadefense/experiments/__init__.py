"""Experiments: a setup, an attack and a defense under one configuration, run and stored."""
