"""SASL as machines: bytes in, bytes or an outcome out; who carries the bytes is not known here."""
