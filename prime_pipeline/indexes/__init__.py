"""The lexical and the vector index, and how a build of both is published."""
