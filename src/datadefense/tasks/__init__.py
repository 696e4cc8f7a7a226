"""Tasks: model, data and backdoor of a federation."""
