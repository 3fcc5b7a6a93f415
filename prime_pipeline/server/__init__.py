"""The query service: HTTP, a page to try queries on, and tools for agents, over whatever is published now."""
