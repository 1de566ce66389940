"""Tests of the data sets, one file for each module."""
