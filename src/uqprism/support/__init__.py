"""What every room needs and none owns: files, optional packages, progress, versions."""
