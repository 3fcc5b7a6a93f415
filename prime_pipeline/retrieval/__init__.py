"""Two-stage hierarchical retrieval (HR): arms, fusion, section scoring."""
