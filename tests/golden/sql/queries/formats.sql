--@test: JSON fields are found without regard to case
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, AN_INT INT, TEXT STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT K, AN_INT + 1 AS N, TEXT FROM S;
INSERT INTO RAW VALUES ('k', '{"an_int": 4, "Text": "x", "more": true}');
ASSERT VALUES O VALUES ('k', 5, 'x');

--@test: JSON that is not there is null
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('k', '{"A": null}');
ASSERT VALUES O VALUES ('k', NULL, NULL);

--@test: numbers of JSON may be strings, and strings anything
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B BIGINT, C DOUBLE, D STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('k', '{"A": "4", "B": "5", "C": "1.5", "D": {"x": [1, 2.50]}}');
ASSERT VALUES O VALUES ('k', 4, 5, 1.5, '{"x":[1,2.50]}');

--@test: records that are not JSON are left out
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('1', '{"A":');
INSERT INTO RAW VALUES ('2', '{"A": "four"}');
INSERT INTO RAW VALUES ('3', '[4]');
INSERT INTO RAW VALUES ('4', '{"A": 99999999999}');
INSERT INTO RAW VALUES ('5', '{"A": 5}');
ASSERT VALUES O VALUES ('5', 5);

--@test: all types in JSON
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='o', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A BOOLEAN, B DECIMAL(6, 2), C ARRAY<INT>, D MAP<STRING, BIGINT>, E STRUCT<X INT, Y STRING>, F BYTES, G DATE, H TIME, I TIMESTAMP, J DOUBLE) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O WITH (kafka_topic='o') AS SELECT * FROM S;
INSERT INTO S VALUES ('k', TRUE, 12.50, ARRAY[1, 2], MAP('a' := 3), STRUCT(X := 1, Y := 'y'), TO_BYTES('aGk=', 'base64'), '2021-02-03', '01:02:03', '2021-02-03T04:05:06.789', 1.5);
ASSERT VALUES RAW VALUES ('k', '{"A":true,"B":12.50,"C":[1,2],"D":{"a":3},"E":{"X":1,"Y":"y"},"F":"aGk=","G":18661,"H":3723000,"I":1612325106789,"J":1.5}');

--@test: nested nulls
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='o', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, C ARRAY<INT>, E STRUCT<X INT, Y STRING>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O WITH (kafka_topic='o') AS SELECT * FROM S;
INSERT INTO S VALUES ('k', ARRAY[1, NULL], STRUCT(X := 1, Y := CAST(NULL AS STRING)));
ASSERT VALUES RAW VALUES ('k', '{"C":[1,null],"E":{"X":1,"Y":null}}');

--@test: a bare value
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='JSON', wrap_single_value=false);
CREATE STREAM O AS SELECT K, A + 1 AS B FROM S;
INSERT INTO RAW VALUES ('k', '4');
ASSERT VALUES OUT_RAW VALUES ('k', '5');

--@test: a bare value can be wrapped
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='JSON', wrap_single_value=false);
CREATE STREAM O WITH (wrap_single_value=true) AS SELECT K, A FROM S;
INSERT INTO S VALUES ('k', 4);
ASSERT VALUES OUT_RAW VALUES ('k', '{"A":4}');

--@test: a line of values
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B STRING, C DOUBLE, D BOOLEAN, E DECIMAL(4, 1)) WITH (kafka_topic='s', value_format='DELIMITED');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO RAW VALUES ('k', '4,"a,b",1.5,true,2.5');
INSERT INTO RAW VALUES ('k', ',,,,');
INSERT INTO RAW VALUES ('k', '4,a');
INSERT INTO RAW VALUES ('k', 'x,a,1,true,1');
ASSERT VALUES OUT_RAW VALUES ('k', '4,"a,b",1.5,true,2.5');
ASSERT VALUES OUT_RAW VALUES ('k', ',,,,');

--@test: another delimiter
CREATE STREAM RAW (K STRING KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B STRING) WITH (kafka_topic='s', value_format='DELIMITED', value_delimiter='|');
CREATE STREAM O WITH (value_format='DELIMITED', value_delimiter='TAB') AS SELECT * FROM S;
INSERT INTO RAW VALUES ('k', '4|a,b');
ASSERT VALUES OUT_RAW VALUES ('k', '4	a,b');

--@test: the delimiter is inherited
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B STRING) WITH (kafka_topic='s', value_format='DELIMITED', value_delimiter='|');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 1, 'x');
ASSERT VALUES OUT_RAW VALUES ('k', '1|x');

--@test: keys of JSON
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (A INT KEY, B STRING KEY, C INT) WITH (kafka_topic='s', value_format='JSON', key_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES (1, 'x', 3);
ASSERT VALUES OUT_RAW VALUES ('{"A":1,"B":"x"}', '{"C":3}');

--@test: one key of JSON is bare
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (A STRING KEY, C INT) WITH (kafka_topic='s', format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('x', 3);
ASSERT VALUES OUT_RAW VALUES ('"x"', '{"C":3}');

--@test: keys as a line of values
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (A INT KEY, B STRING KEY, C INT) WITH (kafka_topic='s', value_format='JSON', key_format='DELIMITED', key_delimiter=';');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES (1, 'x', 3);
ASSERT VALUES OUT_RAW VALUES ('1;x', '{"C":3}');

--@test: a key as a struct
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (A STRUCT<X INT, Y STRING> KEY, C INT) WITH (kafka_topic='s', format='JSON');
CREATE TABLE O AS SELECT A, COUNT(*) AS N FROM S GROUP BY A;
INSERT INTO S VALUES (STRUCT(X := 1, Y := 'y'), 3);
INSERT INTO S VALUES (STRUCT(X := 1, Y := 'y'), 3);
ASSERT VALUES OUT_RAW VALUES ('{"X":1,"Y":"y"}', '{"N":1}');
ASSERT VALUES OUT_RAW VALUES ('{"X":1,"Y":"y"}', '{"N":2}');

--@test: the numbers of Kafka's own serializers
CREATE STREAM S (A BIGINT KEY, C DOUBLE) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM RAW (A BYTES KEY, C BYTES) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM O AS SELECT A, C * 2.0E0 AS C FROM S;
INSERT INTO S VALUES (258, 0.5);
ASSERT VALUES RAW VALUES (TO_BYTES('0000000000000102', 'hex'), TO_BYTES('3FF0000000000000', 'hex'));

--@test: from one format to another
CREATE STREAM OUT_RAW (K STRING KEY, V STRING) WITH (kafka_topic='O', value_format='KAFKA');
CREATE STREAM S (K STRING KEY, A INT, B STRING) WITH (kafka_topic='s', value_format='DELIMITED');
CREATE STREAM O WITH (value_format='JSON', key_format='JSON') AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 1, 'x');
ASSERT VALUES OUT_RAW VALUES ('"k"', '{"A":1,"B":"x"}');

--@test: Avro there and back
CREATE STREAM S (K STRING KEY, A INT, B BIGINT, C DOUBLE, D BOOLEAN, E STRING, F DECIMAL(6, 2), G ARRAY<INT>, H MAP<STRING, INT>, I STRUCT<X INT, Y STRING>, J BYTES, L DATE, M TIME, N TIMESTAMP) WITH (kafka_topic='s', value_format='AVRO');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 1, 2, 1.5, TRUE, 'e', 12.50, ARRAY[1, NULL], MAP('a' := 1), STRUCT(X := 1, Y := 'y'), TO_BYTES('aGk=', 'base64'), '2021-02-03', '01:02:03', '2021-02-03T04:05:06.789');
INSERT INTO S (K) VALUES ('nulls');
ASSERT VALUES O VALUES ('k', 1, 2, 1.5, TRUE, 'e', 12.50, ARRAY[1, NULL], MAP('a' := 1), STRUCT(X := 1, Y := 'y'), TO_BYTES('aGk=', 'base64'), '2021-02-03', '01:02:03', '2021-02-03T04:05:06.789');
ASSERT VALUES O (K, A, G, I) VALUES ('nulls', NULL, NULL, NULL);

--@test: the columns of an Avro topic are read from its schema
CREATE STREAM S (K STRING KEY, A INT, B STRUCT<X INT>) WITH (kafka_topic='s', value_format='AVRO');
INSERT INTO S VALUES ('k', 1, STRUCT(X := 2));
CREATE STREAM INFERRED (K STRING KEY) WITH (kafka_topic='s', value_format='AVRO');
ASSERT STREAM INFERRED (K STRING KEY, A INT, B STRUCT<X INT>);
CREATE STREAM O AS SELECT K, A + B->X AS C FROM INFERRED;
INSERT INTO S VALUES ('k', 3, STRUCT(X := 4));
ASSERT VALUES O VALUES ('k', 7);

--@test: keys of Avro
CREATE STREAM S (A INT KEY, B STRING KEY, C INT) WITH (kafka_topic='s', format='AVRO');
CREATE TABLE O AS SELECT B, A, COUNT(*) AS N FROM S GROUP BY B, A;
INSERT INTO S VALUES (1, 'x', 3);
INSERT INTO S VALUES (1, 'x', 4);
ASSERT VALUES O (B, A, N) VALUES ('x', 1, 1);
ASSERT VALUES O (B, A, N) VALUES ('x', 1, 2);

--@test: JSON with a schema there and back
CREATE STREAM S (K STRING KEY, A INT, F DECIMAL(6, 2), G ARRAY<INT>, H MAP<STRING, INT>, I STRUCT<X INT, Y STRING>, N TIMESTAMP) WITH (kafka_topic='s', value_format='JSON_SR');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 1, 12.50, ARRAY[1, NULL], MAP('a' := 1), STRUCT(X := 1, Y := 'y'), '2021-02-03T04:05:06.789');
ASSERT VALUES O VALUES ('k', 1, 12.50, ARRAY[1, NULL], MAP('a' := 1), STRUCT(X := 1, Y := 'y'), '2021-02-03T04:05:06.789');

--@test: the columns of JSON with a schema are read from it
CREATE STREAM S (K STRING KEY, A INT, B DECIMAL(6, 2), C ARRAY<STRING>) WITH (kafka_topic='s', value_format='JSON_SR');
INSERT INTO S VALUES ('k', 1, 1.00, ARRAY['x']);
CREATE STREAM INFERRED (K STRING KEY) WITH (kafka_topic='s', value_format='JSON_SR');
ASSERT STREAM INFERRED (K STRING KEY, A INT, B DECIMAL(6, 2), C ARRAY<STRING>);

--@test: Protobuf there and back
CREATE STREAM S (K STRING KEY, A INT, B BIGINT, C DOUBLE, D BOOLEAN, E STRING, G ARRAY<INT>, H MAP<STRING, INT>, I STRUCT<X INT, Y STRING>, J BYTES, N TIMESTAMP) WITH (kafka_topic='s', value_format='PROTOBUF');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES ('k', 1, 2, 1.5, TRUE, 'e', ARRAY[1, 2], MAP('a' := 1), STRUCT(X := 1, Y := 'y'), TO_BYTES('aGk=', 'base64'), '2021-02-03T04:05:06.789');
ASSERT VALUES O VALUES ('k', 1, 2, 1.5, TRUE, 'e', ARRAY[1, 2], MAP('a' := 1), STRUCT(X := 1, Y := 'y'), TO_BYTES('aGk=', 'base64'), '2021-02-03T04:05:06.789');

--@test: Protobuf cannot tell null from zero
CREATE STREAM S (K STRING KEY, A INT, E STRING, I STRUCT<X INT>) WITH (kafka_topic='s', value_format='PROTOBUF');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S (K) VALUES ('k');
ASSERT VALUES O VALUES ('k', 0, '', NULL);

--@test: the columns of a Protobuf topic are read from its schema
CREATE STREAM S (K STRING KEY, A INT, B MAP<STRING, BIGINT>, C ARRAY<STRUCT<X INT>>) WITH (kafka_topic='s', value_format='PROTOBUF');
INSERT INTO S VALUES ('k', 1, MAP('a' := 2), ARRAY[STRUCT(X := 3)]);
CREATE STREAM INFERRED (K STRING KEY) WITH (kafka_topic='s', value_format='PROTOBUF');
ASSERT STREAM INFERRED (K STRING KEY, A INT, B MAP<STRING, BIGINT>, C ARRAY<STRUCT<X INT>>);

--@test: a record's time is read from a column
CREATE STREAM S (K STRING KEY, T BIGINT) WITH (kafka_topic='s', value_format='JSON', timestamp='T');
CREATE STREAM O AS SELECT K, ROWTIME AS SEEN FROM S;
INSERT INTO S (ROWTIME, K, T) VALUES (5, 'k', 1234);
ASSERT VALUES O (ROWTIME, K, SEEN) VALUES (1234, 'k', 1234);

--@test: a record's time is a text in a format
CREATE STREAM S (K STRING KEY, T STRING) WITH (kafka_topic='s', value_format='JSON', timestamp='T', timestamp_format='yyyy-MM-dd''T''HH:mm:ssX');
CREATE STREAM O AS SELECT K, ROWTIME AS SEEN FROM S;
INSERT INTO S VALUES ('k', '2021-02-03T04:05:06Z');
INSERT INTO S VALUES ('bad', 'yesterday');
INSERT INTO S VALUES ('none', NULL);
ASSERT VALUES O (ROWTIME, K, SEEN) VALUES (1612325106000, 'k', 1612325106000);

--@test: a record's time is a timestamp
CREATE STREAM S (K STRING KEY, T TIMESTAMP) WITH (kafka_topic='s', value_format='JSON', timestamp='T');
CREATE STREAM O AS SELECT K, T FROM S;
INSERT INTO S VALUES ('k', '2021-02-03T04:05:06');
ASSERT VALUES O (ROWTIME, K) VALUES (1612325106000, 'k');

--@test: windows go by that time
CREATE STREAM S (K STRING KEY, T BIGINT) WITH (kafka_topic='s', value_format='JSON', timestamp='T');
CREATE TABLE O AS SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K;
INSERT INTO S VALUES ('k', 1500);
INSERT INTO S VALUES ('k', 1900);
ASSERT VALUES O (K, WINDOWSTART, C) VALUES ('k', 1000, 1);
ASSERT VALUES O (K, WINDOWSTART, C) VALUES ('k', 1000, 2);

--@test: a query writes records at a time of its own
CREATE STREAM S (K STRING KEY, T BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O WITH (timestamp='LATER') AS SELECT K, T + 1000 AS LATER FROM S;
INSERT INTO S (ROWTIME, K, T) VALUES (5, 'k', 1234);
ASSERT VALUES O (ROWTIME, K, LATER) VALUES (2234, 'k', 2234);

--@test: DELIMITED holds no arrays
--@expected.message: The 'DELIMITED' format does not support type 'ARRAY<INTEGER>'
CREATE STREAM S (K STRING KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='DELIMITED');

--@test: KAFKA holds one column
--@expected.message: The 'KAFKA' format only supports a single field
CREATE STREAM S (K STRING KEY, A INT, B INT) WITH (kafka_topic='s', value_format='KAFKA');

--@test: KAFKA holds no truth values
--@expected.message: The 'KAFKA' format does not support type 'BOOLEAN'
CREATE STREAM S (K STRING KEY, A BOOLEAN) WITH (kafka_topic='s', value_format='KAFKA');

--@test: a format that nobody knows
--@expected.message: Unknown format: XML
CREATE STREAM S (K STRING KEY, A BOOLEAN) WITH (kafka_topic='s', value_format='XML');

--@test: FORMAT is for both
--@expected.message: Cannot supply both
CREATE STREAM S (K STRING KEY, A BOOLEAN) WITH (kafka_topic='s', format='JSON', value_format='JSON');

--@test: two columns cannot be bare
--@expected.message: only valid for single-field value schemas
CREATE STREAM S (K STRING KEY, A INT, B INT) WITH (kafka_topic='s', value_format='JSON', wrap_single_value=false);

--@test: DELIMITED knows no wrapping
--@expected.message: does not support 'WRAP_SINGLE_VALUE'
CREATE STREAM S (K STRING KEY, A INT) WITH (kafka_topic='s', value_format='DELIMITED', wrap_single_value=false);

--@test: a time is not a boolean
--@expected.message: Timestamp column, `A`, should be
CREATE STREAM S (K STRING KEY, A BOOLEAN) WITH (kafka_topic='s', value_format='JSON', timestamp='A');

--@test: a time that is a text needs a format
--@expected.message: a String with a timestamp_format
CREATE STREAM S (K STRING KEY, A STRING) WITH (kafka_topic='s', value_format='JSON', timestamp='A');

--@test: Protobuf and exact numbers
--@expected.message: does not support the type DECIMAL(4, 2) yet
CREATE STREAM S (K STRING KEY, A DECIMAL(4, 2)) WITH (kafka_topic='s', value_format='PROTOBUF');
CREATE STREAM O AS SELECT * FROM S;
