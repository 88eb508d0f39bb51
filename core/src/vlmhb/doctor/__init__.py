"""What can be said about a model before it is loaded: its files, its memory, and what each engine makes of it.

Nothing here imports an engine or reads weights; engines are asked in processes of their own (:mod:`.ask`).
"""
