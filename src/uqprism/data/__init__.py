"""Data to learn from: generators of synthetic sets."""
