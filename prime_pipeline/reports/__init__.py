"""Reports: plain records of results, and the page, the Markdown and the JSON that show them."""
