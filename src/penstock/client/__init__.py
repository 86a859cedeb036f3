"""How programs reach a broker, ours or Apache Kafka's: Producer, Consumer, Admin.

Records move through librdkafka (`producer`, `consumer`); everything else is asked for over our own
small wire client (`connection`, `cluster`, `admin`). docs/adr/0005-client.md says why.
Nothing here imports the broker's side. Importing this package costs nothing; librdkafka is loaded
with `penstock.client.producer.producer` or `penstock.client.consumer.consumer`.
"""
