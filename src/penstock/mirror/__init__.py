"""Topics of one cluster copied to another, exactly once, with offsets that can be translated.

`penstock mirror mm2.properties` reads MirrorMaker 2's own file and writes MirrorMaker 2's own
topics; what it does better is told in docs/mirror.md. Both clusters may be Apache Kafka's.
"""
