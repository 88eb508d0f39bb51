"""Runs: planning, asking, storing every answer, scoring, exporting."""
