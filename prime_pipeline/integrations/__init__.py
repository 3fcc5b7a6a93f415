"""Retrievers for other frameworks, each in a module of its own with an extra of its name."""
