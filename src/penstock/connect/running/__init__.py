"""A task at work: its loop, and the Spark job that the loop runs in.

    process of the worker              Spark's Python worker
    resident.py submits a job   →      task_loop.py: source_loop.py or sink_loop.py
    control.py listens          ←→     channel.py tells how it is, hears pause and stop

The loops know nothing of Spark, so they can be run and tested by themselves.
"""
