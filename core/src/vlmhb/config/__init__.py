"""Config files: read, checked as a whole, and turned into the jobs of a run."""
