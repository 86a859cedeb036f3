"""The platform at work: stock prices flow in, Spark averages them, a terminal shows it.

`make run` starts it. Everything here uses the same doors as any program: the client to send and
read, a declared pipeline under the supervisor, and the broker as an ordinary process.
"""
