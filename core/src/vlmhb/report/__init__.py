"""The report: one folder with a page that opens offline, made from the run folders alone."""
