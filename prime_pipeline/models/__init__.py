"""Neural models behind small protocols. The only package that imports torch and sentence-transformers."""
