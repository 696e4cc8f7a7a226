"""An experiment on Flower: its clients train on the nodes of a Flower federation."""
