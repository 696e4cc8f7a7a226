"""The networks of the setups."""
