"""HTTP: records posted to an API, and an API that is asked again and again for what is new.

The settings are Confluent's. Everything is of the standard library.
"""
