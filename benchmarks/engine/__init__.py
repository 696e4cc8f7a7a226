"""The engine beside its ceiling, a naive loop, Flower's simulation and pfl."""
