"""Word count, the first program of every streams book: lines in, a count for each word out.

    penstock topics --bootstrap-server localhost:9092 --create --topic lines --partitions 2
    penstock topics --bootstrap-server localhost:9092 --create --topic word-counts --partitions 2
    penstock streams run examples/streams/word_count.py
    penstock console-producer --bootstrap-server localhost:9092 --topic lines \\
        < examples/samples/lines.txt
    penstock console-consumer --bootstrap-server localhost:9092 --topic word-counts \\
        --from-beginning --formatter-property print.key=true --formatter-property \\
        value.deserializer=org.apache.kafka.common.serialization.LongDeserializer
"""

from penstock.streams import LONG, STRING, StreamsBuilder

builder = StreamsBuilder(value=STRING)
words = builder.stream("lines").flat_map_values(lambda line: line.lower().split())
counts = words.group_by(lambda key, word: word).count(store="counts")
counts.to_stream().to("word-counts", value=LONG)
topology = builder.build()
