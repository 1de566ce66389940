"""Support for all rooms: atomic files, optional packages, progress bars, versions."""
