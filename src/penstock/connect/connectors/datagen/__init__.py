"""Made-up records for a topic, from a schema that says how its fields are made: no server needed.

They answer to the class name of Confluent's generator, and take its schemas.
"""
