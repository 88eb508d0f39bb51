"""MiniCPM-V 2.6: what a folder of it brings."""
