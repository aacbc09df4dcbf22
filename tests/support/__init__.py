"""Helpers for tests: real servers, proxies, fixtures and builders."""
