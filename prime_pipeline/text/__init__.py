"""Text as such: normal forms, words, stop words. Nothing here knows of documents or indexes."""
