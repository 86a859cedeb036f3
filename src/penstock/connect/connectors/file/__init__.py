"""Lines of a file into a topic, and a topic into lines of a file: the connectors of the tutorial.

They answer to the class names of Kafka's own, and their offsets are the same.
"""
