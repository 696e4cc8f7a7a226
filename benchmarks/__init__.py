"""Benchmarks: what the package costs, beside what else does the same work."""
