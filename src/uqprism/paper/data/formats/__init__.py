"""Readers of the files that data sets come in, one format each; all raise `FileError` that names the file and what is wrong."""
