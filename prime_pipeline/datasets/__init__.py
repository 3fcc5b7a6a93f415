"""Queries and judgements to evaluate with."""
