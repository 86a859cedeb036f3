"""Syslog: what machines and routers report, over UDP or TCP, into a topic.

The settings are Confluent's. Everything is of the standard library.
"""
