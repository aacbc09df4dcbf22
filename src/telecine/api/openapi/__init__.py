"""The OpenAPI document: descriptions, examples and what linters ask for."""
