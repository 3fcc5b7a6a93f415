"""Measures over runs and judgements."""
