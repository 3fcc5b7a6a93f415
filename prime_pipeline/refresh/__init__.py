"""The steps of a refresh, from the corpus to the published index, for whoever orchestrates them."""
