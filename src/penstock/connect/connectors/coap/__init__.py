"""CoAP: resources of small devices observed into a topic, and records put to resources.

The library is aiocoap; `client.py` alone knows it.
"""
