"""The core's own sections, one a file."""
