"""Tests of what other libraries bring."""
