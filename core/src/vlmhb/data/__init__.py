"""Reading what users have (datasets, prompts, answers) and writing tables that read back exactly."""
