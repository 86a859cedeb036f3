"""JSON documents to the bytes of a schema and back, for whoever has HTTP on one side.

`codec.py` picks the language; each language has one module. Serializers of values that programs
hold are in `schemas.serializers`.
"""
