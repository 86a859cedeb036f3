--@test: DELIMITED writes what needs quotes in quotes
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A STRING, B INT) WITH (kafka_topic='s', value_format='DELIMITED');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 'say "hi", you', 1);
ASSERT VALUES OUT_RAW VALUES ('k', '"say ""hi"", you",1');

--@test: DELIMITED by a word for the delimiter
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A STRING, B INT) WITH (kafka_topic='s', value_format='DELIMITED', value_delimiter='SPACE');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 'a', 1);
ASSERT VALUES OUT_RAW VALUES ('k', 'a 1');

--@test: DELIMITED with dates
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A DATE, B TIME, C TIMESTAMP) WITH (kafka_topic='s', value_format='DELIMITED');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', '2021-02-03', '01:02:03', '2021-02-03T04:05:06.789');
ASSERT VALUES O VALUES ('k', '2021-02-03', '01:02:03', '2021-02-03T04:05:06.789');

--@test: KAFKA with a whole number
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM O AS SELECT K, A + 1 AS B FROM S;
INSERT INTO S VALUES (1, 41);
ASSERT VALUES O VALUES (1, 42);

--@test: KAFKA with text
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM O AS SELECT K, UCASE(V) AS V FROM RAW;
INSERT INTO RAW VALUES ('k', 'v');
ASSERT VALUES O VALUES ('k', 'V');

--@test: no key at all
CREATE STREAM S (A INT) WITH (kafka_topic='s', key_format='NONE', value_format='JSON');
CREATE STREAM O AS SELECT A + 1 AS B FROM S;
INSERT INTO S VALUES (1);
ASSERT VALUES O VALUES (2);

--@test: JSON numbers of all sizes
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B BIGINT, C DOUBLE) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('k', '{"A": -2147483648, "B": 9223372036854775807, "C": 1e10}');
ASSERT VALUES O VALUES ('k', -2147483648, 9223372036854775807, 1.0E10);

--@test: JSON numbers that are too large are left out
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('1', '{"A": 2147483648}');
INSERT INTO RAW VALUES ('2', '{"A": 2147483647}');
ASSERT VALUES O VALUES ('2', 2147483647);

--@test: JSON arrays of structs
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, L ARRAY<STRUCT<X INT, Y ARRAY<STRING>>>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT K, L[1]->X AS X, L[2]->Y[1] AS Y FROM S;
INSERT INTO RAW VALUES ('k', '{"l": [{"x": 1}, {"y": ["a"]}]}');
ASSERT VALUES O VALUES ('k', 1, 'a');

--@test: JSON fields that nobody asked for
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('k', '{"A": 1, "B": {"deep": [1, 2]}, "C": null}');
ASSERT VALUES O VALUES ('k', 1);

--@test: JSON keys with fields
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (A INT KEY, B INT) WITH (kafka_topic='s', format='JSON');
CREATE STREAM O AS SELECT B, A FROM S PARTITION BY B;
INSERT INTO S VALUES (1, 2);
ASSERT VALUES OUT_RAW VALUES ('2', '{"A":1}');

--@test: a tombstone goes through a stream
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('k', NULL);
INSERT INTO RAW VALUES ('k', '{"A": 1}');
ASSERT NULL VALUES O (K) KEY ('k');
ASSERT VALUES O VALUES ('k', 1);

--@test: Avro with nested types
CREATE STREAM S (K STRING KEY, A ARRAY<STRUCT<X INT, M MAP<STRING, ARRAY<INT>>>>) WITH (kafka_topic='s', value_format='AVRO');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', ARRAY[STRUCT(X := 1, M := MAP('a' := ARRAY[1, 2]))]);
ASSERT VALUES O VALUES ('k', ARRAY[STRUCT(X := 1, M := MAP('a' := ARRAY[1, 2]))]);

--@test: Avro of one value without a record
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='AVRO', wrap_single_value=false);
CREATE STREAM O AS SELECT K, A + 1 AS B FROM S;
INSERT INTO S VALUES ('k', 1);
ASSERT VALUES O VALUES ('k', 2);

--@test: Avro with a count
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', format='AVRO');
CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
INSERT INTO S VALUES ('k', 1);
INSERT INTO S VALUES ('k', 1);
ASSERT VALUES O VALUES ('k', 1);
ASSERT VALUES O VALUES ('k', 2);

--@test: Avro to JSON
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B STRUCT<X INT>) WITH (kafka_topic='s', value_format='AVRO');
CREATE STREAM O WITH (value_format='JSON') AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 1, STRUCT(X := 2));
ASSERT VALUES OUT_RAW VALUES ('k', '{"A":1,"B":{"X":2}}');

--@test: JSON to Avro to Protobuf
CREATE STREAM S (K STRING KEY, A INT, B STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM P WITH (value_format='AVRO') AS SELECT * FROM S;
CREATE STREAM O WITH (value_format='PROTOBUF') AS SELECT * FROM P;
INSERT INTO S VALUES ('k', 1, 'b');
ASSERT VALUES O VALUES ('k', 1, 'b');

--@test: Protobuf with nested types
CREATE STREAM S (K STRING KEY, A ARRAY<STRUCT<X INT, Y STRING>>) WITH (kafka_topic='s', value_format='PROTOBUF');
CREATE STREAM O AS SELECT K, A[2]->Y AS Y FROM S;
INSERT INTO S VALUES ('k', ARRAY[STRUCT(X := 1, Y := 'a'), STRUCT(X := 2, Y := 'b')]);
ASSERT VALUES O VALUES ('k', 'b');

--@test: JSON_SR with nested types
CREATE STREAM S (K STRING KEY, A ARRAY<STRUCT<X INT, Y STRING>>) WITH (kafka_topic='s', value_format='JSON_SR');
CREATE STREAM O AS SELECT K, A[1]->X AS X FROM S;
INSERT INTO S VALUES ('k', ARRAY[STRUCT(X := 1, Y := 'a')]);
ASSERT VALUES O VALUES ('k', 1);

--@test: JSON_SR as a key
CREATE STREAM S (A INT KEY, B STRING KEY, C INT) WITH (kafka_topic='s', format='JSON_SR');
CREATE TABLE O AS SELECT A, B, SUM(C) AS T FROM S GROUP BY A, B;
INSERT INTO S VALUES (1, 'x', 3);
INSERT INTO S VALUES (1, 'x', 4);
ASSERT VALUES O (A, B, T) VALUES (1, 'x', 3);
ASSERT VALUES O (A, B, T) VALUES (1, 'x', 7);

--@test: windows of Avro keys
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', format='AVRO');
CREATE TABLE O AS SELECT K, SUM(A) AS T FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K;
INSERT INTO S (ROWTIME, K, A) VALUES (1500, 'k', 3);
ASSERT VALUES O (K, WINDOWSTART, T) VALUES ('k', 1000, 3);

--@test: windows of JSON keys
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', format='JSON');
CREATE TABLE O AS SELECT K, SUM(A) AS T FROM S WINDOW SESSION (1 SECOND) GROUP BY K;
INSERT INTO S (ROWTIME, K, A) VALUES (1500, 'k', 3);
ASSERT VALUES O (K, WINDOWSTART, WINDOWEND, T) VALUES ('k', 1500, 1500, 3);

--@test: a time in a column of the key's stream goes on
CREATE STREAM S (K STRING KEY, T BIGINT) WITH (kafka_topic='s', value_format='JSON', timestamp='T');
CREATE STREAM P AS SELECT K, T FROM S;
CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM P WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K;
INSERT INTO S VALUES ('k', 5500);
ASSERT VALUES O (K, WINDOWSTART, C) VALUES ('k', 5000, 1);

--@test: a time before 1970 is left out
CREATE STREAM S (K STRING KEY, T BIGINT) WITH (kafka_topic='s', value_format='JSON', timestamp='T');
CREATE STREAM O AS SELECT K, T FROM S;
INSERT INTO S VALUES ('k', -1);
INSERT INTO S VALUES ('l', 1);
ASSERT VALUES O VALUES ('l', 1);

--@test: KAFKA holds no arrays
--@expected.message: The 'KAFKA' format does not support type 'ARRAY<INTEGER>'
CREATE STREAM S (K STRING KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='KAFKA');

--@test: KAFKA holds no exact numbers
--@expected.message: The 'KAFKA' format does not support type 'DECIMAL(4, 2)'
CREATE STREAM S (K STRING KEY, A DECIMAL(4, 2)) WITH (kafka_topic='s', value_format='KAFKA');

--@test: DELIMITED holds no structs
--@expected.message: The 'DELIMITED' format does not support type 'STRUCT
CREATE STREAM S (K STRING KEY, A STRUCT<X INT>) WITH (kafka_topic='s', value_format='DELIMITED');

--@test: DELIMITED holds no maps
--@expected.message: The 'DELIMITED' format does not support type 'MAP<STRING, INTEGER>'
CREATE STREAM S (K STRING KEY, A MAP<STRING, INT>) WITH (kafka_topic='s', value_format='DELIMITED');

--@test: NONE holds no columns
--@expected.message: The 'NONE' format can only be used when no columns are defined
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='JSON', key_format='NONE');

--@test: a delimiter of two letters
--@expected.message: Invalid delimiter value
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='DELIMITED', value_delimiter='ab');

--@test: columns are inferred from a registry alone
--@expected.message: The statement does not define any columns.
CREATE STREAM S WITH (kafka_topic='s', value_format='JSON');
