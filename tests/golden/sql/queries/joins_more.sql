--@test: a join of streams begins on either side
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;
INSERT INTO R (ROWTIME, ID, B) VALUES (100, 1, 'b');
INSERT INTO L (ROWTIME, ID, A) VALUES (200, 1, 'a');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (200, 1, 'a', 'b');

--@test: each pair meets once
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (100, 1, 'a1');
INSERT INTO L (ROWTIME, ID, A) VALUES (200, 1, 'a2');
INSERT INTO R (ROWTIME, ID, B) VALUES (300, 1, 'b1');
INSERT INTO R (ROWTIME, ID, B) VALUES (400, 1, 'b2');
ASSERT VALUES O VALUES (1, 'a1', 'b1');
ASSERT VALUES O VALUES (1, 'a2', 'b1');
ASSERT VALUES O VALUES (1, 'a1', 'b2');
ASSERT VALUES O VALUES (1, 'a2', 'b2');

--@test: the edges of WITHIN belong to it
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (5000, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (4000, 1, 'early');
INSERT INTO R (ROWTIME, ID, B) VALUES (6000, 1, 'late');
INSERT INTO R (ROWTIME, ID, B) VALUES (6001, 1, 'too late');
ASSERT VALUES O VALUES (1, 'a', 'early');
ASSERT VALUES O VALUES (1, 'a', 'late');

--@test: keys that are NULL meet nobody
CREATE STREAM L (ID INT KEY, X STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, Y STRING, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT X, A, B FROM L JOIN R WITHIN 1 SECOND ON L.X = R.Y;
INSERT INTO L (ROWTIME, ID, X, A) VALUES (1, 1, NULL, 'a');
INSERT INTO R (ROWTIME, ID, Y, B) VALUES (2, 1, NULL, 'b');
INSERT INTO L (ROWTIME, ID, X, A) VALUES (3, 1, 'k', 'c');
INSERT INTO R (ROWTIME, ID, Y, B) VALUES (4, 1, 'k', 'd');
ASSERT VALUES O VALUES ('k', 'c', 'd');

--@test: a join of streams computes with both sides
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, CONCAT(A, '-', B) AS AB FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID WHERE B <> 'no';
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2, 1, 'no');
INSERT INTO R (ROWTIME, ID, B) VALUES (3, 1, 'b');
ASSERT VALUES O VALUES (1, 'a-b');

--@test: a join of streams is laid by another column
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT B, L.ID AS LID, A FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID PARTITION BY B;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2, 1, 'b');
ASSERT VALUES O (B, LID, A) VALUES ('b', 1, 'a');

--@test: a join of streams is counted
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, COUNT(*) AS C FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID GROUP BY L.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2, 1, 'b');
INSERT INTO R (ROWTIME, ID, B) VALUES (3, 1, 'c');
ASSERT VALUES O VALUES (1, 1);
ASSERT VALUES O VALUES (1, 2);

--@test: a join of streams is counted in windows
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, COUNT(*) AS C FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY L.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (900, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (1100, 1, 'b');
ASSERT VALUES O (ID, WINDOWSTART, C) VALUES (1, 1000, 1);

--@test: a left join of streams that meets has no lonely row
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L LEFT JOIN R WITHIN 1 SECOND GRACE PERIOD 0 SECONDS ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (100, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (200, 1, 'b');
INSERT INTO L (ROWTIME, ID, A) VALUES (9000, 9, 'z');
ASSERT VALUES O VALUES (1, 'a', 'b');

--@test: the right side of a left join is never alone
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L LEFT JOIN R WITHIN 1 SECOND GRACE PERIOD 0 SECONDS ON L.ID = R.ID;
INSERT INTO R (ROWTIME, ID, B) VALUES (100, 1, 'b');
INSERT INTO L (ROWTIME, ID, A) VALUES (9000, 9, 'z');
INSERT INTO L (ROWTIME, ID, A) VALUES (19000, 9, 'y');
ASSERT VALUES O VALUES (9, 'z', NULL);

--@test: sources may have other names
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT X.ID AS ID, X.A AS A, Y.B AS B FROM L X INNER JOIN R AS Y WITHIN 1 SECOND ON X.ID = Y.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2, 1, 'b');
ASSERT VALUES O VALUES (1, 'a', 'b');

--@test: streams of different value formats
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='DELIMITED');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='AVRO');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2, 1, 'b');
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT STREAM O (ID INT KEY, A STRING, B STRING) WITH (value_format='DELIMITED');

--@test: streams joined on fields of structs
CREATE STREAM L (ID INT KEY, X STRUCT<K STRING>) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, Y STRUCT<K STRING>, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT ROWKEY AS K, X->K AS XK, B FROM L JOIN R WITHIN 1 SECOND ON X->K = Y->K;
INSERT INTO L (ROWTIME, ID, X) VALUES (1, 1, STRUCT(K := 'k'));
INSERT INTO R (ROWTIME, ID, Y, B) VALUES (2, 2, STRUCT(K := 'k'), 'b');
ASSERT VALUES O VALUES ('k', 'k', 'b');

--@test: a row of a table alone writes nothing
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S JOIN T ON S.ID = T.ID;
INSERT INTO T VALUES (1, 'x');
INSERT INTO S VALUES (2, 'a');
INSERT INTO S VALUES (1, 'b');
ASSERT VALUES O VALUES (1, 'b', 'x');

--@test: a left join meets a row that comes later
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S LEFT JOIN T ON S.ID = T.ID;
INSERT INTO S VALUES (1, 'a');
INSERT INTO T VALUES (1, 'x');
INSERT INTO S VALUES (1, 'b');
ASSERT VALUES O VALUES (1, 'a', NULL);
ASSERT VALUES O VALUES (1, 'b', 'x');

--@test: what a left join does not find can be replaced
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, COALESCE(B, 'nobody') AS B FROM S LEFT JOIN T ON S.ID = T.ID;
INSERT INTO S VALUES (1, 'a');
ASSERT VALUES O VALUES (1, 'nobody');

--@test: only what is not found
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A FROM S LEFT JOIN T ON S.ID = T.ID WHERE T.ID IS NULL;
INSERT INTO T VALUES (1, 'x');
INSERT INTO S VALUES (1, 'a');
INSERT INTO S VALUES (2, 'b');
ASSERT VALUES O VALUES (2, 'b');

--@test: a stream with a table that a query keeps
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM E (ID INT KEY, N INT) WITH (kafka_topic='e', value_format='JSON');
CREATE TABLE C AS SELECT ID, COUNT(*) AS SEEN FROM E GROUP BY ID;
CREATE STREAM O AS SELECT S.ID AS ID, A, SEEN FROM S JOIN C ON S.ID = C.ID;
INSERT INTO E VALUES (1, 0);
INSERT INTO E VALUES (1, 0);
INSERT INTO S VALUES (1, 'a');
ASSERT VALUES O VALUES (1, 'a', 2);

--@test: a joined stream is counted by a column of the table
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT B, COUNT(*) AS C FROM S JOIN T ON S.ID = T.ID GROUP BY B;
INSERT INTO T VALUES (1, 'x');
INSERT INTO T VALUES (2, 'x');
INSERT INTO S VALUES (1, 'a');
INSERT INTO S VALUES (2, 'b');
ASSERT VALUES O VALUES ('x', 1);
ASSERT VALUES O VALUES ('x', 2);

--@test: the star of a stream and a table
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S JOIN T ON S.ID = T.ID;
INSERT INTO T VALUES (1, 'x');
INSERT INTO S VALUES (1, 'a');
ASSERT VALUES O (S_ID, S_A, T_ID, T_B) VALUES (1, 'a', 1, 'x');

--@test: tables that only one side has
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.ID = R.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (2, 'b');
INSERT INTO R VALUES (1, 'c');
ASSERT VALUES O VALUES (1, 'a', 'c');

--@test: a row that leaves the left of a left join
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='l', value_format='KAFKA');
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L LEFT JOIN R ON L.ID = R.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO RAW VALUES (1, NULL);
ASSERT VALUES O VALUES (1, 'a', NULL);
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a row that leaves the right of a left join
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='r', value_format='KAFKA');
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L LEFT JOIN R ON L.ID = R.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (1, 'b');
INSERT INTO RAW VALUES (1, NULL);
ASSERT VALUES O VALUES (1, 'a', NULL);
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT VALUES O VALUES (1, 'a', NULL);

--@test: rows that leave a full join one after the other
CREATE STREAM RAWL (ID INT KEY, V STRING) WITH (kafka_topic='l', value_format='KAFKA');
CREATE STREAM RAWR (ID INT KEY, V STRING) WITH (kafka_topic='r', value_format='KAFKA');
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT ROWKEY AS ID, A, B FROM L FULL OUTER JOIN R ON L.ID = R.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (1, 'b');
INSERT INTO RAWL VALUES (1, NULL);
INSERT INTO RAWR VALUES (1, NULL);
ASSERT VALUES O VALUES (1, 'a', NULL);
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT VALUES O VALUES (1, NULL, 'b');
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a join of tables is filtered, and rows leave it
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.ID = R.ID WHERE B <> 'no';
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (1, 'b');
INSERT INTO R VALUES (1, 'no');
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a join of tables is regrouped
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT B, COUNT(*) AS C FROM L JOIN R ON L.ID = R.ID GROUP BY B;
INSERT INTO L VALUES (1, 'a');
INSERT INTO L VALUES (2, 'a');
INSERT INTO R VALUES (1, 'x');
INSERT INTO R VALUES (2, 'x');
ASSERT VALUES O VALUES ('x', 1);
ASSERT VALUES O VALUES ('x', 2);

--@test: three tables
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE M (ID INT PRIMARY KEY, C STRING) WITH (kafka_topic='m', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B, C FROM L JOIN R ON L.ID = R.ID JOIN M ON L.ID = M.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (1, 'b');
INSERT INTO M VALUES (1, 'c');
ASSERT VALUES O VALUES (1, 'a', 'b', 'c');

--@test: three tables, of which one need not be there
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE M (ID INT PRIMARY KEY, C STRING) WITH (kafka_topic='m', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B, C FROM L JOIN R ON L.ID = R.ID LEFT JOIN M ON L.ID = M.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (1, 'b');
INSERT INTO M VALUES (1, 'c');
ASSERT VALUES O VALUES (1, 'a', 'b', NULL);
ASSERT VALUES O VALUES (1, 'a', 'b', 'c');

--@test: two streams and a table
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, C STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B, C FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID JOIN T ON L.ID = T.ID;
INSERT INTO T VALUES (1, 'c');
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2, 1, 'b');
ASSERT VALUES O VALUES (1, 'a', 'b', 'c');

--@test: a foreign key whose row goes
CREATE STREAM RAW (ID STRING KEY, V STRING) WITH (kafka_topic='r', value_format='KAFKA');
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.REF = R.ID;
INSERT INTO R VALUES ('x', 'b');
INSERT INTO L VALUES (1, 'x', 'a');
INSERT INTO RAW VALUES ('x', NULL);
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a row with a foreign key goes
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='l', value_format='KAFKA');
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.REF = R.ID;
INSERT INTO R VALUES ('x', 'b');
INSERT INTO L VALUES (1, 'x', 'a');
INSERT INTO RAW VALUES (1, NULL);
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT NULL VALUES O (ID) KEY (1);

--@test: a foreign key that is NULL
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.REF = R.ID;
INSERT INTO R VALUES ('x', 'b');
INSERT INTO L VALUES (1, NULL, 'a');
INSERT INTO L VALUES (2, 'x', 'c');
ASSERT VALUES O VALUES (2, 'c', 'b');

--@test: a foreign key of a left join that is NULL
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L LEFT JOIN R ON L.REF = R.ID;
INSERT INTO L VALUES (1, NULL, 'a');
ASSERT VALUES O VALUES (1, 'a', NULL);

--@test: a foreign key that the other table gets later
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.REF = R.ID;
INSERT INTO L VALUES (1, 'x', 'a');
INSERT INTO L VALUES (2, 'y', 'c');
INSERT INTO R VALUES ('x', 'b');
ASSERT VALUES O VALUES (1, 'a', 'b');

--@test: no WITHIN between streams
--@expected.message: WITHIN
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.ID = R.ID;

--@test: WITHIN between a stream and a table
--@expected.message: WITHIN
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S JOIN T WITHIN 1 SECOND ON S.ID = T.ID;

--@test: a full join of a stream and a table
--@expected.message: FULL OUTER JOIN of a stream and a table is not supported
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S FULL OUTER JOIN T ON S.ID = T.ID;

--@test: a table joined with a stream
--@expected.message: Invalid join order: table-stream joins are not supported
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM T JOIN S ON S.ID = T.ID;

--@test: a join on keys of different types
--@expected.message: Invalid join condition
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID STRING KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;

--@test: a join that compares one side with itself
--@expected.message: Invalid comparison expression 'L.ID = L.ID' in join
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = L.ID;

--@test: a join by something else than equality
--@expected.message: join
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID > R.ID;

--@test: a join of a source with itself
--@expected.message: Can not join 'L' to 'L': self joins are not yet supported
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT X.ID AS ID, X.A AS A FROM L X JOIN L Y WITHIN 1 SECOND ON X.ID = Y.ID;

--@test: a name that both sides have
--@expected.message: is ambiguous
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;

--@test: a stream with a table that is not joined by its key
--@expected.message: stream-table joins require to join on the primary key
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S JOIN T ON S.A = T.B;

--@test: a join without its key in the projection
--@expected.message: must include
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;
