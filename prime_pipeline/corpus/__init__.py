"""From files to documents: readers for each format, and the cut into sections."""
