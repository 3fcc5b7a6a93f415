"""Ways to represent a corpus by vectors, for comparison: each gives units of text with the document they stand for."""
