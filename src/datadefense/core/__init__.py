"""The ground of all: a round, its gate, a defense, its state, and the files they come in."""
