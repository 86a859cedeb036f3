--@test: an array gives a row for each item
CREATE STREAM S (ID INT KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(A) AS X FROM S;
INSERT INTO S VALUES (1, ARRAY[3, 4]);
INSERT INTO S VALUES (2, ARRAY[5]);
ASSERT VALUES O VALUES (1, 3);
ASSERT VALUES O VALUES (1, 4);
ASSERT VALUES O VALUES (2, 5);

--@test: an array of null gives no row
CREATE STREAM S (ID INT KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(A) AS X FROM S;
INSERT INTO S VALUES (1, NULL);
INSERT INTO S VALUES (2, ARRAY[5]);
ASSERT VALUES O VALUES (2, 5);

--@test: two arrays go side by side
CREATE STREAM S (ID INT KEY, A ARRAY<INT>, B ARRAY<STRING>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(A) AS X, EXPLODE(B) AS Y FROM S;
INSERT INTO S VALUES (1, ARRAY[3, 4], ARRAY['a']);
ASSERT VALUES O VALUES (1, 3, 'a');
ASSERT VALUES O VALUES (1, 4, NULL);

--@test: what is exploded can be computed with
CREATE STREAM S (ID INT KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(A) * 10 AS X FROM S WHERE ID > 1;
INSERT INTO S VALUES (1, ARRAY[3]);
INSERT INTO S VALUES (2, ARRAY[3, 4]);
ASSERT VALUES O VALUES (2, 30);
ASSERT VALUES O VALUES (2, 40);

--@test: an array of structs
CREATE STREAM S (ID INT KEY, A ARRAY<STRUCT<X INT, Y STRING>>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, EXPLODE(A)->X AS X, EXPLODE(A)->Y AS Y FROM S;
INSERT INTO S VALUES (1, ARRAY[STRUCT(X := 1, Y := 'a'), STRUCT(X := 2, Y := 'b')]);
ASSERT VALUES O VALUES (1, 1, 'a');
ASSERT VALUES O VALUES (1, 2, 'b');

--@test: table functions do not go with aggregates
--@expected.message: Table functions cannot be used with aggregations
CREATE STREAM S (ID INT KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, EXPLODE(A) AS X, COUNT(*) AS C FROM S GROUP BY ID;

--@test: table functions do not go with tables
--@expected.message: Table source is not supported with table functions
CREATE TABLE T (ID INT PRIMARY KEY, A ARRAY<INT>) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT ID, EXPLODE(A) AS X FROM T;

--@test: no table function in a condition
--@expected.message: Table functions in WHERE clause are not supported
CREATE STREAM S (ID INT KEY, A ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A FROM S WHERE EXPLODE(A) > 1;
