"""Fast, exact arithmetic on a matrix of updates; tests compare each kernel with plain loops."""
