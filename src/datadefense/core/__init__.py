"""The core: a round, the gate, a defense, its state, and the files that hold them."""
