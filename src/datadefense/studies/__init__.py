"""Reproduction: grids of runs, the store of their results, and what is rendered from it."""
