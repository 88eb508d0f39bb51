"""Is it the same? One set of requests on several engines, compared token by token."""
