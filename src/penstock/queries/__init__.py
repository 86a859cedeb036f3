"""One supervised Spark session, to which queries are added and removed while it runs.

A JVM costs half a gigabyte and seconds, so all queries of a process share one. `session` starts
them one after the other, restarts those that fail, and tells how each is doing and how far behind
it is. What a query computes is its owner's business: pipelines declare functions, others plans.
"""
