"""The REST proxy: Kafka for those who have no Kafka client, in Confluent's API v2 and v3.

`process` is the process, `config` its settings, `proxy` what all requests share: the brokers
(`brokers`), one producer (`producing`), the errors (`errors`). `v2` and `v3` are the two versions
of the API; `payloads` turns what stands in a request into the bytes of a record, and back.
"""
