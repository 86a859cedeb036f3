--@test: by the key
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, COUNT(*) AS C FROM S GROUP BY ID;
INSERT INTO S VALUES (1, 1);
INSERT INTO S VALUES (2, 1);
INSERT INTO S VALUES (1, 1);
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (2, 1);
ASSERT VALUES O VALUES (1, 2);
ASSERT TABLE O (ID INT PRIMARY KEY, C BIGINT);

--@test: by a column of the value
CREATE STREAM S (ID INT KEY, A STRING, B BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT A, SUM(B) AS TOTAL FROM S GROUP BY A;
INSERT INTO S VALUES (1, 'x', 3);
INSERT INTO S VALUES (2, 'x', 4);
ASSERT VALUES O VALUES ('x', 3);
ASSERT VALUES O VALUES ('x', 7);

--@test: by an expression that gets a name
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT UCASE(A) AS U, COUNT(*) AS C FROM S GROUP BY UCASE(A);
INSERT INTO S VALUES (1, 'x');
INSERT INTO S VALUES (2, 'X');
ASSERT VALUES O VALUES ('X', 1);
ASSERT VALUES O VALUES ('X', 2);

--@test: by several columns
CREATE STREAM S (ID INT KEY, A STRING, B BIGINT) WITH (kafka_topic='s', value_format='JSON', key_format='JSON');
CREATE TABLE O AS SELECT A, B, COUNT(*) AS C FROM S GROUP BY A, B;
INSERT INTO S VALUES (1, 'x', 1);
INSERT INTO S VALUES (1, 'x', 2);
INSERT INTO S VALUES (1, 'x', 1);
ASSERT VALUES O VALUES ('x', 1, 1);
ASSERT VALUES O VALUES ('x', 2, 1);
ASSERT VALUES O VALUES ('x', 1, 2);

--@test: a null in the key is no group
CREATE STREAM S (ID INT KEY, A STRING, B BIGINT) WITH (kafka_topic='s', value_format='JSON', key_format='JSON');
CREATE TABLE O AS SELECT A, B, COUNT(*) AS C FROM S GROUP BY A, B;
INSERT INTO S VALUES (1, NULL, 1);
INSERT INTO S VALUES (1, 'x', NULL);
INSERT INTO S VALUES (1, 'x', 1);
ASSERT VALUES O VALUES ('x', 1, 1);

--@test: many aggregates at once
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, MIN(A) AS LOW, MAX(A) AS HIGH, AVG(A) AS MEAN, COUNT(A) AS N FROM S GROUP BY ID;
INSERT INTO S VALUES (1, 4);
INSERT INTO S VALUES (1, NULL);
INSERT INTO S VALUES (1, 2);
ASSERT VALUES O VALUES (1, 4, 4, 4.0, 1);
ASSERT VALUES O VALUES (1, 4, 4, 4.0, 1);
ASSERT VALUES O VALUES (1, 2, 4, 3.0, 2);

--@test: an aggregate inside an expression
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, SUM(A) / COUNT(*) AS MEAN, SUM(A) + 1 AS MORE FROM S GROUP BY ID;
INSERT INTO S VALUES (1, 4);
INSERT INTO S VALUES (1, 8);
ASSERT VALUES O VALUES (1, 4, 5);
ASSERT VALUES O VALUES (1, 6, 13);

--@test: an expression of the group's key
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, ID * 10 AS TENFOLD, COUNT(*) AS C FROM S GROUP BY ID;
INSERT INTO S VALUES (3, 4);
ASSERT VALUES O VALUES (3, 30, 1);

--@test: rows are filtered before they are added up
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, SUM(A) AS TOTAL FROM S WHERE A > 1 GROUP BY ID;
INSERT INTO S VALUES (1, 1);
INSERT INTO S VALUES (1, 2);
ASSERT VALUES O VALUES (1, 2);

--@test: HAVING hides groups, and deletes those that were seen
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, SUM(A) AS TOTAL FROM S GROUP BY ID HAVING SUM(A) > 5;
INSERT INTO S VALUES (1, 4);
INSERT INTO S VALUES (1, 2);
INSERT INTO S VALUES (1, -3);
INSERT INTO S VALUES (1, -1);
ASSERT VALUES O VALUES (1, 6);
ASSERT NULL VALUES O (ID) KEY (1);

--@test: HAVING of an aggregate that is not selected
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, SUM(A) AS TOTAL FROM S GROUP BY ID HAVING COUNT(*) >= 2;
INSERT INTO S VALUES (1, 4);
INSERT INTO S VALUES (1, 2);
ASSERT VALUES O VALUES (1, 6);

--@test: the latest, the earliest and all of them
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, LATEST_BY_OFFSET(A) AS L, EARLIEST_BY_OFFSET(A) AS E, COLLECT_LIST(A) AS C FROM S GROUP BY ID;
INSERT INTO S VALUES (1, 'a');
INSERT INTO S VALUES (1, 'b');
ASSERT VALUES O VALUES (1, 'a', 'a', ARRAY['a']);
ASSERT VALUES O VALUES (1, 'b', 'a', ARRAY['a', 'b']);

--@test: a table's rows leave their old group
CREATE TABLE T (ID INT PRIMARY KEY, G STRING, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT G, COUNT(*) AS C, SUM(A) AS TOTAL FROM T GROUP BY G;
INSERT INTO T VALUES (1, 'x', 10);
INSERT INTO T VALUES (2, 'x', 5);
INSERT INTO T VALUES (1, 'y', 10);
ASSERT VALUES O VALUES ('x', 1, 10);
ASSERT VALUES O VALUES ('x', 2, 15);
ASSERT VALUES O VALUES ('x', 1, 5);
ASSERT VALUES O VALUES ('y', 1, 10);

--@test: a table's row that changes in its group counts once
CREATE TABLE T (ID INT PRIMARY KEY, G STRING, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT G, COUNT(*) AS C, SUM(A) AS TOTAL FROM T GROUP BY G;
INSERT INTO T VALUES (1, 'x', 10);
INSERT INTO T VALUES (1, 'x', 7);
ASSERT VALUES O VALUES ('x', 1, 10);
ASSERT VALUES O VALUES ('x', 1, 7);

--@test: a deleted row leaves its group
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='t', value_format='KAFKA');
CREATE TABLE T (ID INT PRIMARY KEY, G STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT G, COUNT(*) AS C FROM T GROUP BY G;
INSERT INTO T VALUES (1, 'x');
INSERT INTO T VALUES (2, 'x');
INSERT INTO RAW VALUES (1, NULL);
ASSERT VALUES O VALUES ('x', 1);
ASSERT VALUES O VALUES ('x', 2);
ASSERT VALUES O VALUES ('x', 1);

--@test: an aggregate of an aggregate
CREATE STREAM S (ID INT KEY, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE N AS SELECT G, COUNT(*) AS C FROM S GROUP BY G;
CREATE TABLE O AS SELECT C, COUNT(*) AS GROUPS FROM N GROUP BY C;
INSERT INTO S VALUES (1, 'x');
INSERT INTO S VALUES (1, 'y');
INSERT INTO S VALUES (1, 'x');
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (1, 2);
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (2, 1);

--@test: exact numbers stay exact
CREATE STREAM S (ID INT KEY, A DECIMAL(6, 2)) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, SUM(A) AS TOTAL FROM S GROUP BY ID;
INSERT INTO S VALUES (1, 0.10);
INSERT INTO S VALUES (1, 0.20);
ASSERT VALUES O VALUES (1, 0.10);
ASSERT VALUES O VALUES (1, 0.30);

--@test: a column that is not of the group
--@expected.message: Non-aggregate SELECT expression(s) not part of GROUP BY
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, A, COUNT(*) AS C FROM S GROUP BY ID;

--@test: a group without aggregates
--@expected.message: GROUP BY requires aggregate functions
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID FROM S GROUP BY ID;

--@test: an aggregate without a group
--@expected.message: Use of aggregate functions requires a GROUP BY clause. Aggregate function(s): COUNT
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, COUNT(*) AS C FROM S;

--@test: HAVING without a group
--@expected.message: HAVING requires a GROUP BY clause
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A FROM S HAVING A > 1;

--@test: the group's key must be selected
--@expected.message: must include the grouping expression
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT COUNT(*) AS C FROM S GROUP BY ID;

--@test: an aggregation is a table
--@expected.message: Your SELECT query produces a TABLE
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, COUNT(*) AS C FROM S GROUP BY ID;

--@test: aggregates cannot be nested
--@expected.message: Aggregate functions can not be nested
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, SUM(COUNT(*)) AS C FROM S GROUP BY ID;

--@test: no aggregate in WHERE
--@expected.message: Aggregate functions are not allowed in WHERE
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, COUNT(*) AS C FROM S WHERE COUNT(*) > 1 GROUP BY ID;

--@test: a maximum cannot be taken back
--@expected.message: cannot be applied to a table source
CREATE TABLE T (ID INT PRIMARY KEY, G STRING, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT G, MAX(A) AS M FROM T GROUP BY G;

--@test: a map cannot be a key
--@expected.message: contains a map is not supported
CREATE STREAM S (ID INT KEY, A MAP<STRING, INT>) WITH (kafka_topic='s', value_format='JSON', key_format='JSON');
CREATE TABLE O AS SELECT A, COUNT(*) AS C FROM S GROUP BY A;

--@test: GROUP BY takes no aggregate
--@expected.message: GROUP BY does not support aggregate functions
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT COUNT(*) AS C FROM S GROUP BY COUNT(*);
