--@test: columns are selected, renamed and computed
CREATE STREAM S (ID INT KEY, A BIGINT, B STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A + 1 AS NEXT, UCASE(B) AS UPPER FROM S;
INSERT INTO S (ROWTIME, ID, A, B) VALUES (5, 1, 41, 'hi');
ASSERT VALUES O (ROWTIME, ID, NEXT, UPPER) VALUES (5, 1, 42, 'HI');
ASSERT STREAM O (ID INT KEY, NEXT BIGINT, UPPER STRING) WITH (kafka_topic='O', value_format='JSON', key_format='KAFKA');

--@test: a star takes all columns, the key first
CREATE STREAM S (A BIGINT, ID INT KEY, B STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S (ID, A, B) VALUES (1, 2, 'x');
ASSERT VALUES O (ID, A, B) VALUES (1, 2, 'x');
ASSERT STREAM O (ID INT KEY, A BIGINT, B STRING);

--@test: an expression without a name is numbered
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A * 2, A + 1 AS B, A - 1 FROM S;
INSERT INTO S VALUES (1, 10);
ASSERT VALUES O (ID, KSQL_COL_0, B, KSQL_COL_1) VALUES (1, 20, 11, 9);

--@test: a generated name steps aside for one that was given
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A * 2, A AS KSQL_COL_0 FROM S;
INSERT INTO S VALUES (1, 10);
ASSERT VALUES O (ID, KSQL_COL_1, KSQL_COL_0) VALUES (1, 20, 10);

--@test: a field of a struct gives its name
CREATE STREAM S (ID INT KEY, A STRUCT<X INT, Y STRUCT<Z STRING>>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A->X, A->Y->Z FROM S;
INSERT INTO S VALUES (1, STRUCT(X := 3, Y := STRUCT(Z := 'deep')));
ASSERT VALUES O (ID, X, Z) VALUES (1, 3, 'deep');

--@test: all fields of a struct
CREATE STREAM S (ID INT KEY, A STRUCT<X INT, Y STRING>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A->* FROM S;
INSERT INTO S VALUES (1, STRUCT(X := 3, Y := 'y'));
ASSERT VALUES O (ID, X, Y) VALUES (1, 3, 'y');

--@test: quoted names keep their case
CREATE STREAM S (ID INT KEY, `lower` BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, `lower` + 1 AS `other` FROM S;
INSERT INTO S (ID, `lower`) VALUES (1, 10);
ASSERT VALUES O (ID, `other`) VALUES (1, 11);

--@test: a filter lets pass what is true, not what is null
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE A > 5 OR ID = 9;
INSERT INTO S VALUES (1, 5);
INSERT INTO S VALUES (2, 6);
INSERT INTO S VALUES (3, NULL);
INSERT INTO S VALUES (9, NULL);
ASSERT VALUES O VALUES (2, 6);
ASSERT VALUES O VALUES (9, NULL);

--@test: a filter of a table deletes rows that no longer pass, and only those
CREATE TABLE T (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT * FROM T WHERE A > 5;
INSERT INTO T VALUES (1, 1);
INSERT INTO T VALUES (1, 7);
INSERT INTO T VALUES (1, 8);
INSERT INTO T VALUES (1, 2);
INSERT INTO T VALUES (1, 3);
ASSERT VALUES O VALUES (1, 7);
ASSERT VALUES O VALUES (1, 8);
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a table's tombstone goes on
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='t', value_format='KAFKA');
CREATE TABLE T (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT ID, A + 1 AS B FROM T;
INSERT INTO T VALUES (1, 1);
INSERT INTO RAW VALUES (1, NULL);
ASSERT VALUES O VALUES (1, 2);
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a value of null goes through a stream, but not through a filter
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='s', value_format='KAFKA');
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
CREATE STREAM P AS SELECT * FROM S WHERE ID = 1;
INSERT INTO RAW VALUES (1, NULL);
INSERT INTO S VALUES (1, 2);
ASSERT NULL VALUES O (ID) KEY (1);
ASSERT VALUES O VALUES (1, 2);
ASSERT VALUES P VALUES (1, 2);

--@test: the key can be copied into the value
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, AS_VALUE(ID) AS COPY FROM S;
INSERT INTO S VALUES (7, 1);
ASSERT VALUES O (ID, COPY) VALUES (7, 7);

--@test: a stream without a key
CREATE STREAM S (A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A + 1 AS B FROM S;
INSERT INTO S VALUES (1);
ASSERT VALUES O VALUES (2);
ASSERT STREAM O (B BIGINT) WITH (key_format='NONE');

--@test: a query of a query
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A + 1 AS A FROM S;
CREATE STREAM P AS SELECT ID, A * 10 AS A FROM O WHERE A > 1;
INSERT INTO S VALUES (1, 0);
INSERT INTO S VALUES (2, 5);
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (2, 6);
ASSERT VALUES P VALUES (2, 60);

--@test: an alias of the source may stand before a column
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT X.ID, X.A FROM S AS X WHERE X.A > 0;
INSERT INTO S VALUES (1, 1);
ASSERT VALUES O VALUES (1, 1);

--@test: times, partitions and offsets of records are columns
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ROWTIME AS T, ROWPARTITION AS P, ROWOFFSET AS N FROM S;
INSERT INTO S (ROWTIME, ID, A) VALUES (17, 1, 0);
INSERT INTO S (ROWTIME, ID, A) VALUES (18, 1, 0);
ASSERT VALUES O (ID, T, P, N) VALUES (1, 17, 0, 0);
ASSERT VALUES O (ID, T, P, N) VALUES (1, 18, 0, 1);

--@test: a record's time can decide
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE ROWTIME >= 100;
INSERT INTO S (ROWTIME, ID, A) VALUES (99, 1, 0);
INSERT INTO S (ROWTIME, ID, A) VALUES (100, 2, 0);
ASSERT VALUES O VALUES (2, 0);

--@test: what fails for one row is null in that row
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, 10 / A AS B FROM S;
INSERT INTO S VALUES (1, 0);
INSERT INTO S VALUES (2, 5);
ASSERT VALUES O VALUES (1, NULL);
ASSERT VALUES O VALUES (2, 2);

--@test: a condition that fails is not true
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE 10 / A > 1;
INSERT INTO S VALUES (1, 0);
INSERT INTO S VALUES (2, 5);
ASSERT VALUES O VALUES (2, 5);

--@test: more queries can write into a stream
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM R (ID INT KEY, A BIGINT) WITH (kafka_topic='r', value_format='DELIMITED');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO O SELECT ID, A FROM R WHERE A > 1;
INSERT INTO S VALUES (1, 1);
INSERT INTO R VALUES (2, 1);
INSERT INTO R VALUES (3, 2);
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (3, 2);

--@test: a query writes into a stream that nothing else writes
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O (ID INT KEY, A BIGINT) WITH (kafka_topic='o', value_format='DELIMITED');
CREATE STREAM P AS SELECT ID, A + 1 AS A FROM O;
INSERT INTO O SELECT ID, A * 10 AS A FROM S;
INSERT INTO S VALUES (1, 1);
INSERT INTO S VALUES (2, NULL);
ASSERT VALUES O VALUES (1, 10);
ASSERT VALUES O VALUES (2, NULL);
ASSERT VALUES P VALUES (1, 11);
ASSERT VALUES P VALUES (2, NULL);

--@test: values can be inserted into what a query writes
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO O VALUES (1, 1);
ASSERT VALUES O VALUES (1, 1);

--@test: variables stand for text
DEFINE LEVEL = '5';
DEFINE SINK = 'O';
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM ${SINK} AS SELECT * FROM S WHERE A > ${LEVEL};
INSERT INTO S VALUES (1, 5);
INSERT INTO S VALUES (2, 6);
ASSERT VALUES O VALUES (2, 6);

--@test: types can have names
CREATE TYPE POINT AS STRUCT<X INT, Y INT>;
CREATE STREAM S (ID INT KEY, P POINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, P->X + P->Y AS BOTH FROM S;
INSERT INTO S VALUES (1, STRUCT(X := 2, Y := 3));
ASSERT VALUES O (ID, BOTH) VALUES (1, 5);

--@test: columns can be added
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
ALTER STREAM S ADD COLUMN B STRING;
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES (1, 1, 'b');
ASSERT VALUES O (ID, A, B) VALUES (1, 1, 'b');

--@test: a filter can be replaced while the stream goes on
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE A > 5;
INSERT INTO S VALUES (1, 3);
INSERT INTO S VALUES (2, 6);
CREATE OR REPLACE STREAM O AS SELECT * FROM S WHERE A > 2;
INSERT INTO S VALUES (3, 3);
ASSERT VALUES O VALUES (2, 6);
ASSERT VALUES O VALUES (3, 3);

--@test: a stream that is dropped can be created anew
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
DROP STREAM O;
CREATE STREAM O AS SELECT ID, A + 1 AS A FROM S;
INSERT INTO S VALUES (1, 1);
ASSERT VALUES O VALUES (1, 2);

--@test: a query that was terminated writes no more
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES (1, 1);
TERMINATE CSAS_O_1;
INSERT INTO S VALUES (2, 2);
ASSERT VALUES O VALUES (1, 1);

--@test: IF NOT EXISTS leaves what is there
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM IF NOT EXISTS S (ID INT KEY, B STRING) WITH (kafka_topic='other', value_format='JSON');
ASSERT STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s');
