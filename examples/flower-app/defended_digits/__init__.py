"""A federation of digits that one node attacks: Flower, defended by DataDefense."""
