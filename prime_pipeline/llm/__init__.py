"""Language models behind an OpenAI-compatible endpoint. The only package that imports openai and tenacity."""
