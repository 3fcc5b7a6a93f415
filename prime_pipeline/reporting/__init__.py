"""What is measured of a workspace, and the report on it: the studies, handed what they need."""
