"""Metadata synthesis (MS): discriminative terms, heading tree, lead, and the text that is embedded."""
