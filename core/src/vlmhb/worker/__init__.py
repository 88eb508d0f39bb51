"""Models in worker processes: one process a model, started from the environment that holds its engine.

::

    this process ──┬── supervisor (tiny; ends with its parent, and ends everything below it)
                   │      └── worker (python -m vlmhb.worker, in the engine's environment)
                   │             └── the engine's own processes
                   └── a private socket to the worker (vlmhb.worker.protocol)

:class:`vlmhb.worker.model.WorkerModel` is the way in; it is used like any other model.
"""
