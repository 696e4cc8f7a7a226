"""Fast, exact arithmetic on a matrix of updates; each kernel has a slow twin in the tests."""
