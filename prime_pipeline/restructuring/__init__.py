"""Semantic restructuring (SR): every section rewritten denser and more explicit, and nothing false or lost let through."""
