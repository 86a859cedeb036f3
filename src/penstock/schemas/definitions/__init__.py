"""Schemas as a registry keeps them: parsed within bounds, printed one way, compared by their rules.

A definition is a schema's text understood. `parse.py` picks the language; each language has one
module. Values are encoded and decoded elsewhere (`schemas.avro`, `schemas.protobuf`).
"""
