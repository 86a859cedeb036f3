"""A task: one partition of a part of the topology, its steps and what they remember.

Every host runs tasks. Memory is a dict in the test driver, and pages of bytes on Spark.
"""
