--@test: by a column
CREATE STREAM S (ID INT KEY, A STRING, B BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A, ID, B FROM S PARTITION BY A;
INSERT INTO S VALUES (1, 'x', 5);
ASSERT VALUES O (A, ID, B) VALUES ('x', 1, 5);
ASSERT STREAM O (A STRING KEY, ID INT, B BIGINT);

--@test: a star gives the new key and the old one
CREATE STREAM S (ID INT KEY, A STRING, B BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S PARTITION BY A;
INSERT INTO S VALUES (1, 'x', 5);
ASSERT VALUES O (A, ID, B) VALUES ('x', 1, 5);
ASSERT STREAM O (A STRING KEY, ID INT, B BIGINT);

--@test: by an expression
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT UCASE(A) AS U, ID FROM S PARTITION BY UCASE(A);
INSERT INTO S VALUES (1, 'x');
ASSERT VALUES O (U, ID) VALUES ('X', 1);
ASSERT STREAM O (U STRING KEY, ID INT);

--@test: a star names the expression
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S PARTITION BY UCASE(A);
INSERT INTO S VALUES (1, 'x');
ASSERT VALUES O (KSQL_COL_0, ID, A) VALUES ('X', 1, 'x');

--@test: by a field of a struct
CREATE STREAM S (ID INT KEY, A STRUCT<X INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A->X AS X, ID FROM S PARTITION BY A->X;
INSERT INTO S VALUES (1, STRUCT(X := 4));
ASSERT VALUES O (X, ID) VALUES (4, 1);

--@test: by several columns
CREATE STREAM S (ID INT KEY, A STRING, B BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O WITH (key_format='JSON') AS SELECT A, B, ID FROM S PARTITION BY A, B;
INSERT INTO S VALUES (1, 'x', 5);
ASSERT VALUES O (A, B, ID) VALUES ('x', 5, 1);
ASSERT STREAM O (A STRING KEY, B BIGINT KEY, ID INT);

--@test: a null is no key
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A, ID FROM S PARTITION BY A;
INSERT INTO S VALUES (1, NULL);
ASSERT VALUES O (A, ID) VALUES (NULL, 1);

--@test: by nothing
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A FROM S PARTITION BY NULL;
INSERT INTO S VALUES (1, 'x');
ASSERT VALUES O (ID, A) VALUES (1, 'x');
ASSERT STREAM O (ID INT, A STRING) WITH (key_format='NONE');

--@test: by the key it has
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S PARTITION BY ID;
INSERT INTO S VALUES (1, 'x');
ASSERT VALUES O (ID, A) VALUES (1, 'x');

--@test: the new key must be selected
--@expected.message: must include the partitioning expression
CREATE STREAM S (ID INT KEY, A STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID FROM S PARTITION BY A;

--@test: a table cannot be partitioned
--@expected.message: PARTITION BY clause is only supported for streams
CREATE TABLE T (ID INT PRIMARY KEY, A STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT * FROM T PARTITION BY A;

--@test: several columns are too many for the KAFKA format
--@expected.message: The 'KAFKA' format only supports a single field
CREATE STREAM S (ID INT KEY, A STRING, B BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A, B, ID FROM S PARTITION BY A, B;
