"""``vlmhb bench``: how fast engines answer one workload on this machine, and in how much memory."""
