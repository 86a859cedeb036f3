"""RabbitMQ: queues into a topic, and records to an exchange.

The settings are Confluent's. The library is pika; `client.py` alone knows it.
"""
