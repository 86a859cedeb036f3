"""The Java runtime that Spark is started with, under the name it always had here.

The search itself is penstock/java.py, which ZooKeeper's server uses as well.
"""

from penstock.java import JavaNotFound, find_java_home

__all__ = ["JavaNotFound", "find_java_home"]
