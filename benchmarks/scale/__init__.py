"""What a defended round costs by its size: bytes received, resident memory, seconds."""
