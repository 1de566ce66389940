"""What the whole package uses: atomic files, optional packages, progress bars, versions."""
