--@test: two streams meet within a time
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID, A, B FROM L JOIN R WITHIN 10 SECONDS ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1000, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (9000, 1, 'b');
INSERT INTO R (ROWTIME, ID, B) VALUES (9000, 2, 'c');
INSERT INTO R (ROWTIME, ID, B) VALUES (11001, 1, 'd');
ASSERT VALUES O (ROWTIME, L_ID, A, B) VALUES (9000, 1, 'a', 'b');
ASSERT STREAM O (L_ID INT KEY, A STRING, B STRING);

--@test: before and after may differ
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN (1 SECOND, 10 SECONDS) ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (20000, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (18000, 1, 'too early');
INSERT INTO R (ROWTIME, ID, B) VALUES (19000, 1, 'just');
INSERT INTO R (ROWTIME, ID, B) VALUES (30000, 1, 'still');
INSERT INTO R (ROWTIME, ID, B) VALUES (30001, 1, 'too late');
ASSERT VALUES O VALUES (1, 'a', 'just');
ASSERT VALUES O VALUES (1, 'a', 'still');

--@test: a left record that meets nobody comes alone, once its time is over
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L LEFT JOIN R WITHIN 10 SECONDS GRACE PERIOD 0 SECONDS ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1000, 1, 'a');
INSERT INTO L (ROWTIME, ID, A) VALUES (2000, 2, 'c');
INSERT INTO R (ROWTIME, ID, B) VALUES (3000, 2, 'd');
INSERT INTO L (ROWTIME, ID, A) VALUES (30000, 3, 'e');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (3000, 2, 'c', 'd');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (1000, 1, 'a', NULL);

--@test: the right side of a right join comes alone
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT R.ID AS ID, A, B FROM L RIGHT JOIN R WITHIN 10 SECONDS GRACE PERIOD 0 SECONDS ON L.ID = R.ID;
INSERT INTO R (ROWTIME, ID, B) VALUES (1000, 1, 'b');
INSERT INTO R (ROWTIME, ID, B) VALUES (2000, 2, 'c');
INSERT INTO L (ROWTIME, ID, A) VALUES (3000, 2, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (30000, 3, 'e');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (3000, 2, 'a', 'c');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (1000, 1, NULL, 'b');

--@test: a full join has a key of its own
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT ROWKEY AS K, L.ID AS X, R.ID AS Y, A, B FROM L FULL OUTER JOIN R WITHIN 10 SECONDS GRACE PERIOD 0 SECONDS ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1000, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2000, 2, 'b');
INSERT INTO L (ROWTIME, ID, A) VALUES (30000, 3, 'e');
ASSERT VALUES O (ROWTIME, K, X, Y, A, B) VALUES (1000, 1, 1, NULL, 'a', NULL);
ASSERT VALUES O (ROWTIME, K, X, Y, A, B) VALUES (2000, 2, NULL, 2, NULL, 'b');

--@test: a star puts the alias before each name
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT * FROM L JOIN R WITHIN 10 SECONDS ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (1, 1, 'b');
ASSERT VALUES O (L_ID, L_A, R_ID, R_B) VALUES (1, 'a', 1, 'b');
ASSERT STREAM O (L_ID INT KEY, L_A STRING, R_ID INT, R_B STRING);

--@test: the star of one side
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.*, R.B FROM L JOIN R WITHIN 10 SECONDS ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (1, 1, 'b');
ASSERT VALUES O (L_ID, L_A, B) VALUES (1, 'a', 'b');

--@test: streams are joined on columns of their values
CREATE STREAM L (ID INT KEY, X STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, Y STRING, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT X, A, B FROM L JOIN R WITHIN 10 SECONDS ON L.X = R.Y;
INSERT INTO L (ROWTIME, ID, X, A) VALUES (1, 1, 'k', 'a');
INSERT INTO R (ROWTIME, ID, Y, B) VALUES (2, 7, 'k', 'b');
ASSERT VALUES O (X, A, B) VALUES ('k', 'a', 'b');

--@test: streams are joined on expressions
CREATE STREAM L (ID INT KEY, X STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, Y STRING, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT ROWKEY, A, B FROM L JOIN R WITHIN 10 SECONDS ON UCASE(L.X) = UCASE(R.Y);
INSERT INTO L (ROWTIME, ID, X, A) VALUES (1, 1, 'k', 'a');
INSERT INTO R (ROWTIME, ID, Y, B) VALUES (2, 7, 'K', 'b');
ASSERT VALUES O (ROWKEY, A, B) VALUES ('K', 'a', 'b');

--@test: a side of another key format is written anew
CREATE STREAM L (ID BIGINT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID BIGINT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON', key_format='JSON');
CREATE STREAM O AS SELECT L.ID AS ID, A, B FROM L JOIN R WITHIN 10 SECONDS ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (1, 1, 'b');
ASSERT VALUES O (ID, A, B) VALUES (1, 'a', 'b');

--@test: a stream meets the row a table has now
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S JOIN T ON S.ID = T.ID;
INSERT INTO S (ROWTIME, ID, A) VALUES (1, 1, 'before');
INSERT INTO T (ROWTIME, ID, B) VALUES (2, 1, 'x');
INSERT INTO S (ROWTIME, ID, A) VALUES (3, 1, 'first');
INSERT INTO T (ROWTIME, ID, B) VALUES (4, 1, 'y');
INSERT INTO S (ROWTIME, ID, A) VALUES (5, 1, 'second');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (3, 1, 'first', 'x');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (5, 1, 'second', 'y');

--@test: a stream meets no row of a table
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S LEFT JOIN T ON S.ID = T.ID;
INSERT INTO S VALUES (1, 'a');
ASSERT VALUES O VALUES (1, 'a', NULL);

--@test: a row that was deleted is not met
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='t', value_format='KAFKA');
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S JOIN T ON S.ID = T.ID;
INSERT INTO T VALUES (1, 'x');
INSERT INTO S VALUES (1, 'a');
INSERT INTO RAW VALUES (1, NULL);
INSERT INTO S VALUES (1, 'b');
ASSERT VALUES O VALUES (1, 'a', 'x');

--@test: a stream is laid by the column it is joined on
CREATE STREAM ORDERS (ID INT KEY, USER_ID STRING, CENTS BIGINT) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE USERS (USER_ID STRING PRIMARY KEY, NAME STRING) WITH (kafka_topic='users', value_format='JSON');
CREATE STREAM O AS SELECT O.USER_ID AS USER_ID, O.ID AS ORDER_ID, CENTS, NAME FROM ORDERS O JOIN USERS U ON O.USER_ID = U.USER_ID;
INSERT INTO USERS VALUES ('u1', 'Ada');
INSERT INTO ORDERS VALUES (17, 'u1', 250);
ASSERT VALUES O (USER_ID, ORDER_ID, CENTS, NAME) VALUES ('u1', 17, 250, 'Ada');

--@test: the condition of a join may stand either way round
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A, B FROM S JOIN T ON T.ID = S.ID;
INSERT INTO T VALUES (1, 'x');
INSERT INTO S VALUES (1, 'a');
ASSERT VALUES O VALUES (1, 'a', 'x');

--@test: a filter looks at both sides
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B BIGINT) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, A + B AS BOTH FROM S JOIN T ON S.ID = T.ID WHERE A > B;
INSERT INTO T VALUES (1, 5);
INSERT INTO S VALUES (1, 4);
INSERT INTO S VALUES (1, 6);
ASSERT VALUES O VALUES (1, 11);

--@test: the times of both sides are columns
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B BIGINT) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID AS ID, S.ROWTIME AS X, T.ROWTIME AS Y FROM S JOIN T ON S.ID = T.ID;
INSERT INTO T (ROWTIME, ID, B) VALUES (3, 1, 5);
INSERT INTO S (ROWTIME, ID, A) VALUES (8, 1, 4);
ASSERT VALUES O (ID, X, Y) VALUES (1, 8, 3);

--@test: two tables that both have the row
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.ID = R.ID;
INSERT INTO L (ROWTIME, ID, A) VALUES (1, 1, 'a');
INSERT INTO R (ROWTIME, ID, B) VALUES (2, 1, 'b');
INSERT INTO L (ROWTIME, ID, A) VALUES (3, 1, 'c');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (2, 1, 'a', 'b');
ASSERT VALUES O (ROWTIME, ID, A, B) VALUES (3, 1, 'c', 'b');
ASSERT TABLE O (ID INT PRIMARY KEY, A STRING, B STRING);

--@test: a row that leaves one table leaves the join
CREATE STREAM RAW (ID INT KEY, V STRING) WITH (kafka_topic='r', value_format='KAFKA');
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.ID = R.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (1, 'b');
INSERT INTO RAW VALUES (1, NULL);
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT NULL VALUES O (ID) KEY (1);

--@test: all rows of the left table
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L LEFT JOIN R ON L.ID = R.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (1, 'b');
INSERT INTO R VALUES (2, 'c');
ASSERT VALUES O VALUES (1, 'a', NULL);
ASSERT VALUES O VALUES (1, 'a', 'b');

--@test: all rows of the right table
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT R.ID AS ID, A, B FROM L RIGHT JOIN R ON L.ID = R.ID;
INSERT INTO R VALUES (1, 'b');
INSERT INTO L VALUES (1, 'a');
INSERT INTO L VALUES (2, 'c');
ASSERT VALUES O VALUES (1, NULL, 'b');
ASSERT VALUES O VALUES (1, 'a', 'b');

--@test: all rows of both tables
CREATE TABLE L (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT ROWKEY AS ID, A, B FROM L FULL OUTER JOIN R ON L.ID = R.ID;
INSERT INTO L VALUES (1, 'a');
INSERT INTO R VALUES (2, 'c');
INSERT INTO R VALUES (1, 'b');
ASSERT VALUES O VALUES (1, 'a', NULL);
ASSERT VALUES O VALUES (2, NULL, 'c');
ASSERT VALUES O VALUES (1, 'a', 'b');

--@test: each row with the row of another table that it points to
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, A, B FROM L JOIN R ON L.REF = R.ID;
INSERT INTO R VALUES ('x', 'b');
INSERT INTO L VALUES (1, 'x', 'a');
INSERT INTO L VALUES (2, 'x', 'c');
INSERT INTO L VALUES (3, 'y', 'd');
INSERT INTO R VALUES ('x', 'e');
ASSERT VALUES O VALUES (1, 'a', 'b');
ASSERT VALUES O VALUES (2, 'c', 'b');
ASSERT VALUES O VALUES (1, 'a', 'e');
ASSERT VALUES O VALUES (2, 'c', 'e');

--@test: a row that points nowhere
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, REF, B FROM L LEFT JOIN R ON L.REF = R.ID;
INSERT INTO L VALUES (1, 'x');
INSERT INTO R VALUES ('x', 'b');
ASSERT VALUES O VALUES (1, 'x', NULL);
ASSERT VALUES O VALUES (1, 'x', 'b');

--@test: a row that points elsewhere
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, REF, B FROM L JOIN R ON L.REF = R.ID;
INSERT INTO R VALUES ('x', 'b');
INSERT INTO R VALUES ('y', 'c');
INSERT INTO L VALUES (1, 'x');
INSERT INTO L VALUES (1, 'y');
ASSERT VALUES O VALUES (1, 'x', 'b');
ASSERT VALUES O VALUES (1, 'y', 'c');

--@test: pointing by an expression
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, REF, B FROM L JOIN R ON UCASE(L.REF) = R.ID;
INSERT INTO R VALUES ('X', 'b');
INSERT INTO L VALUES (1, 'x');
ASSERT VALUES O VALUES (1, 'x', 'b');

--@test: three streams
CREATE STREAM A (ID INT KEY, X STRING) WITH (kafka_topic='a', value_format='JSON');
CREATE STREAM B (ID INT KEY, Y STRING) WITH (kafka_topic='b', value_format='JSON');
CREATE STREAM C (ID INT KEY, Z STRING) WITH (kafka_topic='c', value_format='JSON');
CREATE STREAM O AS SELECT A.ID AS ID, X, Y, Z FROM A JOIN B WITHIN 10 SECONDS ON A.ID = B.ID JOIN C WITHIN 10 SECONDS ON B.ID = C.ID;
INSERT INTO A (ROWTIME, ID, X) VALUES (1, 1, 'x');
INSERT INTO B (ROWTIME, ID, Y) VALUES (2, 1, 'y');
INSERT INTO C (ROWTIME, ID, Z) VALUES (3, 1, 'z');
ASSERT VALUES O (ROWTIME, ID, X, Y, Z) VALUES (3, 1, 'x', 'y', 'z');

--@test: a stream and two tables, each by its own column
CREATE STREAM S (ID INT KEY, U STRING, P STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE USERS (ID STRING PRIMARY KEY, NAME STRING) WITH (kafka_topic='u', value_format='JSON');
CREATE TABLE PAGES (ID STRING PRIMARY KEY, TITLE STRING) WITH (kafka_topic='p', value_format='JSON');
CREATE STREAM O AS SELECT S.P AS P, S.ID AS ID, NAME, TITLE FROM S LEFT JOIN USERS U ON S.U = U.ID JOIN PAGES P ON S.P = P.ID;
INSERT INTO USERS VALUES ('u', 'Ada');
INSERT INTO PAGES VALUES ('p', 'Home');
INSERT INTO S VALUES (1, 'u', 'p');
INSERT INTO S VALUES (2, 'nobody', 'p');
ASSERT VALUES O (P, ID, NAME, TITLE) VALUES ('p', 1, 'Ada', 'Home');
ASSERT VALUES O (P, ID, NAME, TITLE) VALUES ('p', 2, NULL, 'Home');

--@test: three tables
CREATE TABLE A (ID INT PRIMARY KEY, X STRING) WITH (kafka_topic='a', value_format='JSON');
CREATE TABLE B (ID INT PRIMARY KEY, Y STRING) WITH (kafka_topic='b', value_format='JSON');
CREATE TABLE C (ID INT PRIMARY KEY, Z STRING) WITH (kafka_topic='c', value_format='JSON');
CREATE TABLE O AS SELECT A.ID AS ID, X, Y, Z FROM A JOIN B ON A.ID = B.ID LEFT JOIN C ON A.ID = C.ID;
INSERT INTO A VALUES (1, 'x');
INSERT INTO B VALUES (1, 'y');
INSERT INTO C VALUES (1, 'z');
ASSERT VALUES O VALUES (1, 'x', 'y', NULL);
ASSERT VALUES O VALUES (1, 'x', 'y', 'z');

--@test: a join that is added up
CREATE STREAM ORDERS (ID INT KEY, USER_ID STRING, CENTS BIGINT) WITH (kafka_topic='orders', value_format='JSON');
CREATE TABLE USERS (USER_ID STRING PRIMARY KEY, CITY STRING) WITH (kafka_topic='users', value_format='JSON');
CREATE TABLE O AS SELECT U.CITY AS CITY, SUM(O.CENTS) AS TOTAL FROM ORDERS O JOIN USERS U ON O.USER_ID = U.USER_ID GROUP BY U.CITY;
INSERT INTO USERS VALUES ('u1', 'Rome');
INSERT INTO USERS VALUES ('u2', 'Rome');
INSERT INTO ORDERS VALUES (1, 'u1', 100);
INSERT INTO ORDERS VALUES (2, 'u2', 20);
ASSERT VALUES O VALUES ('Rome', 100);
ASSERT VALUES O VALUES ('Rome', 120);

--@test: a join that gets another key
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT B, A FROM S JOIN T ON S.ID = T.ID PARTITION BY B;
INSERT INTO T VALUES (1, 'b');
INSERT INTO S VALUES (1, 'a');
ASSERT VALUES O (B, A) VALUES ('b', 'a');
ASSERT STREAM O (B STRING KEY, A STRING);

--@test: streams need a time
--@expected.message: Stream-Stream joins must have a WITHIN clause
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID, A, B FROM L JOIN R ON L.ID = R.ID;

--@test: tables take no time
--@expected.message: These joins are not windowed
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID, A, B FROM S JOIN T WITHIN 1 SECOND ON S.ID = T.ID;

--@test: a table does not come before a stream
--@expected.message: table-stream joins are not supported
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID, A, B FROM T JOIN S ON S.ID = T.ID;

--@test: a stream joins a table on its key
--@expected.message: joins require to join on the primary key
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID, A, B FROM S JOIN T ON S.A = T.B;

--@test: no full join of a stream and a table
--@expected.message: OUTER JOIN of a stream and a table is not supported
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT S.ID, A, B FROM S FULL OUTER JOIN T ON S.ID = T.ID;

--@test: the types of both sides are the same
--@expected.message: types don't match. Got L.ID{INTEGER} = R.ID{STRING}
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID STRING KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;

--@test: one comparison is a condition
--@expected.message: Unsupported join expression
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID AND L.A = R.B;

--@test: each side of a condition is of one source
--@expected.message: must contain references from exactly one source
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.A = CONCAT(L.A, R.B);

--@test: no join with itself
--@expected.message: self joins are not yet supported
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM O AS SELECT X.ID, X.A FROM L X JOIN L Y WITHIN 1 SECOND ON X.ID = Y.ID;

--@test: partitions match
--@expected.message: the number of partitions don't match
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON', partitions=4);
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON', partitions=2);
CREATE STREAM O AS SELECT L.ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;

--@test: a name that both sides have
--@expected.message: is ambiguous
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT ID, A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;

--@test: the join's key must be selected
--@expected.message: must include the join expression L.ID or R.ID
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT A, B FROM L JOIN R WITHIN 1 SECOND ON L.ID = R.ID;

--@test: a full join's key must be selected
--@expected.message: must include the join expression ROWKEY
CREATE STREAM L (ID INT KEY, A STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE STREAM R (ID INT KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE STREAM O AS SELECT L.ID, A, B FROM L FULL JOIN R WITHIN 1 SECOND ON L.ID = R.ID;

--@test: windowed sources meet windowed ones
--@expected.message: Can not join windowed source to non-windowed source
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE W AS SELECT ID, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY ID;
CREATE TABLE T (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT W.ID, C, B FROM W JOIN T ON W.ID = T.ID;

--@test: no outer join by a foreign key
--@expected.message: OUTER JOIN is not supported for foreign-key joins
CREATE TABLE L (ID INT PRIMARY KEY, REF STRING) WITH (kafka_topic='l', value_format='JSON');
CREATE TABLE R (ID STRING PRIMARY KEY, B STRING) WITH (kafka_topic='r', value_format='JSON');
CREATE TABLE O AS SELECT L.ID AS ID, REF, B FROM L FULL JOIN R ON L.REF = R.ID;
