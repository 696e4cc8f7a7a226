"""What a call of DataDefense costs, beside its floor, a round of training and the release."""
