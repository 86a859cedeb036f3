--@test: a variable in a text
DEFINE topic = 's';
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='${topic}', value_format='JSON');
ASSERT STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s');

--@test: a variable that is defined again
DEFINE n = '1';
DEFINE n = '2';
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A + ${n} AS B FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, 3);

--@test: the name of a variable does not heed case
DEFINE Limit_Of = '5';
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A FROM S WHERE A > ${limit_of};
INSERT INTO S VALUES (1, 5, 'x');
INSERT INTO S VALUES (2, 6, 'x');
ASSERT VALUES O VALUES (2, 6);

--@test: a variable that stays text
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, '$${x}' AS B FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, '$${x}');

--@test: a variable that was never defined
--@expected.message: the variable X is not defined
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ${X} AS B FROM S;

--@test: a variable that is undefined again
--@expected.message: the variable X is not defined
DEFINE X = '1';
UNDEFINE X;
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ${X} AS B FROM S;

--@test: a variable cannot be more than a word
--@expected.message: is not one name, number or string
DEFINE X = '1, 2';
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ${X} AS B FROM S;

--@test: a type of a type
CREATE TYPE NAME AS STRUCT<FIRST STRING, LAST STRING>;
CREATE TYPE PERSON AS STRUCT<N NAME, AGE INT>;
CREATE STREAM S (ID INT KEY, P PERSON) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, P->N->LAST AS L FROM S;
INSERT INTO S VALUES (1, STRUCT(N := STRUCT(FIRST := 'Ada', LAST := 'Byron'), AGE := 36));
ASSERT VALUES O VALUES (1, 'Byron');

--@test: a type in an array and in a map
CREATE TYPE MONEY AS DECIMAL(8, 2);
CREATE STREAM S (ID INT KEY, L ARRAY<MONEY>, M MAP<STRING, MONEY>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, L[1] + M['a'] AS SUM_OF FROM S;
INSERT INTO S VALUES (1, ARRAY[1.50], MAP('a' := 2.25));
ASSERT VALUES O VALUES (1, 3.75);

--@test: a type in a CAST
CREATE TYPE MONEY AS DECIMAL(8, 2);
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, CAST(A AS MONEY) AS M FROM S;
INSERT INTO S VALUES (1, 3, 'x');
ASSERT VALUES O VALUES (1, 3.00);
ASSERT STREAM O (ID INT KEY, M DECIMAL(8, 2));

--@test: a type that is dropped can be made anew
CREATE TYPE T1 AS INT;
DROP TYPE T1;
CREATE TYPE T1 AS STRING;
CREATE STREAM S (ID INT KEY, A T1) WITH (kafka_topic='s', value_format='JSON');
ASSERT STREAM S (ID INT KEY, A STRING);

--@test: a type that may be there
CREATE TYPE T1 AS INT;
CREATE TYPE IF NOT EXISTS T1 AS STRING;
CREATE STREAM S (ID INT KEY, A T1) WITH (kafka_topic='s', value_format='JSON');
ASSERT STREAM S (ID INT KEY, A INT);

--@test: a type that is not there is not dropped
--@expected.message: Type T1 does not exist
DROP TYPE T1;

--@test: the time of a record goes on
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ROWTIME AS T FROM S;
INSERT INTO S (ROWTIME, ID, A, G) VALUES (77, 1, 1, 'x');
ASSERT VALUES O (ROWTIME, ID, T) VALUES (77, 1, 77);

--@test: the time of a record is computed with
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ROWTIME + 1 AS T, FORMAT_TIMESTAMP(FROM_UNIXTIME(ROWTIME), 'yyyy') AS Y FROM S;
INSERT INTO S (ROWTIME, ID, A, G) VALUES (1612325106789, 1, 1, 'x');
ASSERT VALUES O VALUES (1, 1612325106790, '2021');

--@test: offsets decide
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ROWOFFSET AS N FROM S WHERE ROWOFFSET >= 1;
INSERT INTO S VALUES (1, 1, 'x');
INSERT INTO S VALUES (2, 1, 'x');
ASSERT VALUES O VALUES (2, 1);

--@test: a partition is a column
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ROWPARTITION AS P FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, 0);

--@test: headers of a record without any
CREATE STREAM S (ID INT KEY, A INT, H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A, ARRAY_LENGTH(H) AS N FROM S;
INSERT INTO S (ID, A) VALUES (1, 5);
ASSERT VALUES O VALUES (1, 5, 0);

--@test: one header that is not there is NULL
CREATE STREAM S (ID INT KEY, A INT, H BYTES HEADER('trace')) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A, H IS NULL AS NONE FROM S;
INSERT INTO S (ID, A) VALUES (1, 5);
ASSERT VALUES O VALUES (1, 5, TRUE);

--@test: headers cannot be inserted
--@expected.message: Cannot insert into HEADER columns: H
CREATE STREAM S (ID INT KEY, A INT, H BYTES HEADER('trace')) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S (ID, A, H) VALUES (1, 5, TO_BYTES('00', 'hex'));

--@test: two columns of all headers
--@expected.message: Schema already contains a HEADERS column
CREATE STREAM S (ID INT KEY, A INT, H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS, I ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS) WITH (kafka_topic='s', value_format='JSON');

--@test: all headers have their type
--@expected.message: Invalid type for HEADERS column
CREATE STREAM S (ID INT KEY, A INT, H STRING HEADERS) WITH (kafka_topic='s', value_format='JSON');

--@test: an array within an array is exploded once
CREATE STREAM S (ID INT KEY, A ARRAY<ARRAY<INT>>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(A) AS X FROM S;
INSERT INTO S VALUES (1, ARRAY[ARRAY[1, 2], ARRAY[3]]);
ASSERT VALUES O VALUES (1, ARRAY[1, 2]);
ASSERT VALUES O VALUES (1, ARRAY[3]);

--@test: the parts of a text are exploded
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(SPLIT(A, ' ')) AS WORD FROM S;
INSERT INTO S VALUES (1, 'to be');
ASSERT VALUES O VALUES (1, 'to');
ASSERT VALUES O VALUES (1, 'be');

--@test: a map is exploded by its entries
CREATE STREAM S (ID INT KEY, M MAP<STRING, INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(ENTRIES(M, TRUE))->K AS K, EXPLODE(ENTRIES(M, TRUE))->V AS V FROM S;
INSERT INTO S VALUES (1, MAP('b' := 2, 'a' := 1));
ASSERT VALUES O VALUES (1, 'a', 1);
ASSERT VALUES O VALUES (1, 'b', 2);

--@test: GENERATE_SERIES makes rows of an exploded array
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(GENERATE_SERIES(1, 3)) AS N FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (1, 2);
ASSERT VALUES O VALUES (1, 3);

--@test: CUBE_EXPLODE
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, CUBE_EXPLODE(ARRAY[G]) AS C FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, ARRAY[CAST(NULL AS STRING)]);
ASSERT VALUES O VALUES (1, ARRAY['x']);

--@test: what is exploded becomes the key of another stream
CREATE STREAM S (ID INT KEY, A ARRAY<STRING>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM E AS SELECT ID, EXPLODE(A) AS X FROM S;
CREATE TABLE O AS SELECT X, COUNT(*) AS C FROM E GROUP BY X;
INSERT INTO S VALUES (1, ARRAY['a', 'b', 'a']);
ASSERT VALUES O VALUES ('a', 1);
ASSERT VALUES O VALUES ('b', 1);
ASSERT VALUES O VALUES ('a', 2);

--@test: an array without items gives no row
CREATE STREAM S (ID INT KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(FILTER(A, X => X > 10)) AS X FROM S;
INSERT INTO S VALUES (1, ARRAY[1]);
INSERT INTO S VALUES (2, ARRAY[11]);
ASSERT VALUES O VALUES (2, 11);

--@test: all fields of a struct
CREATE STREAM S (ID INT KEY, P STRUCT<X INT, Y STRING>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, P->* FROM S;
INSERT INTO S VALUES (1, STRUCT(X := 1, Y := 'y'));
ASSERT VALUES O (ID, X, Y) VALUES (1, 1, 'y');

--@test: a struct is made of columns
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, STRUCT(A := A, G := UCASE(G)) AS P FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, STRUCT(A := 1, G := 'X'));

--@test: an array of columns
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ARRAY[A, A + 1] AS L FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, ARRAY[1, 2]);

--@test: a map of columns
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, MAP(G := A) AS M FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES (1, MAP('x' := 1));

--@test: names that are quoted keep their case
CREATE STREAM S (ID INT KEY, `a b` INT, `A` INT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, `a b` + A AS `Sum` FROM S;
INSERT INTO S VALUES (1, 2, 3);
ASSERT VALUES O (ID, `Sum`) VALUES (1, 5);

--@test: words of the language as columns
CREATE STREAM S (ID INT KEY, `FROM` INT, KEY INT, TYPE STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, `FROM`, KEY, TYPE FROM S;
INSERT INTO S VALUES (1, 2, 3, 'x');
ASSERT VALUES O VALUES (1, 2, 3, 'x');

--@test: expressions without a name are numbered
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A + 1, UCASE(G) FROM S;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O (ID, KSQL_COL_0, KSQL_COL_1) VALUES (1, 2, 'X');

--@test: a stream without a key
CREATE STREAM S (A INT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A + 1 AS B FROM S;
INSERT INTO S VALUES (1);
ASSERT VALUES O VALUES (2);
ASSERT STREAM O (B INT);

--@test: a stream of a stream of a stream
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM P AS SELECT ID, A + 1 AS A FROM S;
CREATE STREAM Q AS SELECT ID, A * 2 AS A FROM P;
CREATE STREAM O AS SELECT ID, A - 3 AS A FROM Q;
INSERT INTO S VALUES (1, 4, 'x');
ASSERT VALUES O VALUES (1, 7);

--@test: one stream for several queries
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM P AS SELECT * FROM S WHERE A > 1;
CREATE STREAM Q AS SELECT * FROM S WHERE A <= 1;
INSERT INTO S VALUES (1, 1, 'x');
INSERT INTO S VALUES (2, 2, 'y');
ASSERT VALUES P VALUES (2, 2, 'y');
ASSERT VALUES Q VALUES (1, 1, 'x');

--@test: a table follows another
CREATE TABLE T (ID INT PRIMARY KEY, A INT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT ID, A * 2 AS B FROM T;
INSERT INTO T VALUES (1, 1);
INSERT INTO T VALUES (1, 2);
ASSERT VALUES O VALUES (1, 2);
ASSERT VALUES O VALUES (1, 4);

--@test: a filter of a table deletes what it showed
CREATE TABLE T (ID INT PRIMARY KEY, A INT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT * FROM T WHERE A > 1;
INSERT INTO T VALUES (1, 1);
INSERT INTO T VALUES (1, 2);
INSERT INTO T VALUES (1, 0);
ASSERT VALUES O VALUES (1, 2);
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a tombstone goes through a table
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='t', value_format='KAFKA');
CREATE TABLE T (ID INT PRIMARY KEY, A INT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT ID, A + 1 AS B FROM T;
INSERT INTO T VALUES (1, 1);
INSERT INTO RAW VALUES (1, NULL);
ASSERT VALUES O VALUES (1, 2);
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a topic of its own name and partitions
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O WITH (kafka_topic='elsewhere', partitions=3) AS SELECT * FROM S;
ASSERT STREAM O WITH (kafka_topic='elsewhere', partitions=3);

--@test: a query of a query that was replaced
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE OR REPLACE STREAM S (ID INT KEY, A BIGINT, B STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO S VALUES (1, 2, 'b');
ASSERT VALUES O VALUES (1, 2, 'b');

--@test: several columns are added
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
ALTER STREAM S ADD COLUMN B STRING, ADD COLUMN C INT;
ASSERT STREAM S (ID INT KEY, A BIGINT, B STRING, C INT);

--@test: partitioned by an expression of several columns
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT CONCAT(G, '-', CAST(A AS STRING)) AS K, ID FROM S PARTITION BY CONCAT(G, '-', CAST(A AS STRING));
INSERT INTO S VALUES (1, 2, 'x');
ASSERT VALUES O (K, ID) VALUES ('x-2', 1);

--@test: partitioned by an item of an array
CREATE STREAM S (ID INT KEY, L ARRAY<STRING>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT L[1] AS K, ID FROM S PARTITION BY L[1];
INSERT INTO S VALUES (1, ARRAY['a', 'b']);
ASSERT VALUES O (K, ID) VALUES ('a', 1);

--@test: partitioned and filtered
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT G, ID, A FROM S WHERE A > 1 PARTITION BY G;
INSERT INTO S VALUES (1, 1, 'x');
INSERT INTO S VALUES (2, 2, 'y');
ASSERT VALUES O (G, ID, A) VALUES ('y', 2, 2);

--@test: partitioned by a column that is a struct
CREATE STREAM S (ID INT KEY, P STRUCT<X INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O WITH (key_format='JSON') AS SELECT P, ID FROM S PARTITION BY P;
INSERT INTO S VALUES (1, STRUCT(X := 3));
ASSERT VALUES O (P, ID) VALUES (STRUCT(X := 3), 1);

--@test: grouped by a field
CREATE STREAM S (ID INT KEY, P STRUCT<X INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT P->X AS X, COUNT(*) AS C FROM S GROUP BY P->X;
INSERT INTO S VALUES (1, STRUCT(X := 3));
INSERT INTO S VALUES (2, STRUCT(X := 3));
ASSERT VALUES O VALUES (3, 1);
ASSERT VALUES O VALUES (3, 2);

--@test: grouped by an item of a map
CREATE STREAM S (ID INT KEY, M MAP<STRING, STRING>) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT M['k'] AS K, COUNT(*) AS C FROM S GROUP BY M['k'];
INSERT INTO S VALUES (1, MAP('k' := 'v'));
INSERT INTO S VALUES (1, MAP('z' := 'v'));
ASSERT VALUES O VALUES ('v', 1);

--@test: grouped by an expression of a number
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT A % 2 AS ODD, COUNT(*) AS C FROM S GROUP BY A % 2;
INSERT INTO S VALUES (1, 1, 'x');
INSERT INTO S VALUES (1, 2, 'x');
INSERT INTO S VALUES (1, 3, 'x');
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (0, 1);
ASSERT VALUES O VALUES (1, 2);

--@test: the key of a group as a value too
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT G, AS_VALUE(G) AS COPY, COUNT(*) AS C FROM S GROUP BY G;
INSERT INTO S VALUES (1, 1, 'x');
ASSERT VALUES O VALUES ('x', 'x', 1);
