"""MQTT: messages of sensors into a topic, and a topic's records to devices.

The settings are Confluent's. The library is paho-mqtt; `client.py` alone knows it.
"""
