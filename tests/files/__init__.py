"""Tests of files and clusters."""
