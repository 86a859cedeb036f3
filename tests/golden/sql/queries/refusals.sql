--@test: a source that is not there
--@expected.message: NOBODY does not exist.
CREATE STREAM O AS SELECT * FROM NOBODY;

--@test: a column that is not there
--@expected.message: SELECT column 'FOO' cannot be resolved
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, FOO FROM S;

--@test: a column in the wrong case
--@expected.message: Did you mean `a`?
CREATE STREAM S (ID INT KEY, `a` BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, a FROM S;

--@test: an alias that is not there
--@expected.message: 'X' is not a valid stream/table name or alias
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, X.A FROM S;

--@test: a condition that is a number
--@expected.message: Should evaluate to boolean
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE A + 1;

--@test: the key must be selected
--@expected.message: must include the key column ID
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A FROM S;

--@test: the key is selected once
--@expected.message: The projection contains a key column (`ID`) more than once
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ID AS COPY, A FROM S;

--@test: a value is selected
--@expected.message: The projection contains no value columns
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID FROM S;

--@test: two columns of one name
--@expected.message: Duplicate columns found in the projection: `A`
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A, A + 1 AS A FROM S;

--@test: a reserved name
--@expected.message: `ROWTIME` is a reserved column name
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A AS ROWTIME FROM S;

--@test: a reserved name for a column
--@expected.message: 'WINDOWSTART' is a reserved column name
CREATE STREAM S (ID INT KEY, WINDOWSTART BIGINT) WITH (kafka_topic='s', value_format='JSON');

--@test: a table of a stream
--@expected.message: Your SELECT query produces a STREAM. Please use CREATE STREAM AS SELECT
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT * FROM S;

--@test: no limit on what goes on for ever
--@expected.message: LIMIT is not supported in persistent queries
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S LIMIT 5;

--@test: a name that is taken
--@expected.message: A stream with the same name already exists
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE S (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');

--@test: a table needs a key
--@expected.message: Tables require a PRIMARY KEY
CREATE TABLE T (A BIGINT) WITH (kafka_topic='t', value_format='JSON');

--@test: a table's key is primary
--@expected.message: please use 'PRIMARY KEY' for tables
CREATE TABLE T (ID INT KEY, A BIGINT) WITH (kafka_topic='t', value_format='JSON');

--@test: a stream's key is not
--@expected.message: please use 'KEY' for streams
CREATE STREAM S (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');

--@test: no topic
--@expected.message: Missing required property 'KAFKA_TOPIC'
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (value_format='JSON');

--@test: no format
--@expected.message: missing the 'VALUE_FORMAT' property
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s');

--@test: a format for all
SET 'ksql.persistence.default.format.value' = 'JSON';
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s');
ASSERT STREAM S (ID INT KEY, A BIGINT) WITH (value_format='JSON');

--@test: a property that nobody knows
--@expected.message: Invalid config variable(s) in the WITH clause: COLOUR
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON', colour='red');

--@test: a number of partitions that cannot be
--@expected.message: Invalid number of partitions
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON', partitions=0);

--@test: the same column twice
--@expected.message: Duplicate column names: A
CREATE STREAM S (ID INT KEY, A BIGINT, A STRING) WITH (kafka_topic='s', value_format='JSON');

--@test: a type that nobody knows
--@expected.message: Cannot resolve unknown type: POINT
CREATE STREAM S (ID INT KEY, A POINT) WITH (kafka_topic='s', value_format='JSON');

--@test: a type that is taken
--@expected.message: Cannot register custom type 'POINT'
CREATE TYPE POINT AS STRUCT<X INT>;
CREATE TYPE POINT AS STRUCT<Y INT>;

--@test: a map as a key
--@expected.message: Map keys, including types that contain maps, are not supported
CREATE STREAM S (ID MAP<STRING, INT> KEY, A BIGINT) WITH (kafka_topic='s', format='JSON');

--@test: what is used is not dropped
--@expected.message: The following streams and/or tables read from this source: [O]
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
DROP STREAM S;

--@test: what is written to is not dropped
--@expected.message: The following queries write into this source: [INSERTQUERY_2]
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
INSERT INTO O SELECT * FROM S;
DROP STREAM O;

--@test: what is free again is dropped
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
DROP STREAM O DELETE TOPIC;
DROP STREAM S;
CREATE TABLE S (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');

--@test: a stream is not dropped as a table
--@expected.message: Incompatible data source type is STREAM, but statement was DROP TABLE
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
DROP TABLE S;

--@test: what is not there is not dropped
--@expected.message: Stream S does not exist
DROP STREAM S;

--@test: unless it need not be there
DROP STREAM IF EXISTS S;
DROP TABLE IF EXISTS T;
DROP TYPE IF EXISTS P;

--@test: a query that is not there
--@expected.message: Unknown queryId: CSAS_X_9
TERMINATE CSAS_X_9;

--@test: columns only come at the end
--@expected.message: columns can only be added at the end
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE OR REPLACE STREAM S (ID INT KEY, B BIGINT) WITH (kafka_topic='s', value_format='JSON');

--@test: a key does not change
--@expected.message: has a different key columns
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE OR REPLACE STREAM S (ID BIGINT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');

--@test: a group does not change
--@expected.message: the GROUP BY of O cannot change
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, COUNT(*) AS C FROM S GROUP BY ID;
CREATE OR REPLACE TABLE O AS SELECT A AS ID, COUNT(*) AS C FROM S GROUP BY A;

--@test: a column that is there is not added
--@expected.message: A column with the same name already exists
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
ALTER STREAM S ADD COLUMN A STRING;

--@test: a query's columns are not altered
--@expected.message: ALTER command is not supported for CREATE ... AS statements
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S;
ALTER STREAM O ADD COLUMN B STRING;

--@test: other columns are not inserted
--@expected.message: Incompatible schema between results and sink
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O (ID INT KEY, A STRING) WITH (kafka_topic='o', value_format='JSON');
INSERT INTO O SELECT * FROM S;

--@test: queries do not write into tables
--@expected.message: INSERT INTO can only be used to insert into a stream
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE T (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
INSERT INTO T SELECT * FROM S;

--@test: too few values
--@expected.message: Expected a value for each column
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S VALUES (1);

--@test: a value of another type
--@expected.message: Expected type BIGINT for field `A` but got BOOLEAN
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S VALUES (1, TRUE);

--@test: a value for no column
--@expected.message: Column name `B` does not exist
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S (ID, B) VALUES (1, 1);

--@test: a row without its key
--@expected.message: Value for primary key column(s) ID is required for tables
CREATE TABLE T (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
INSERT INTO T (A) VALUES (1);

--@test: nothing is inserted where it is only read
--@expected.message: Cannot insert values into read-only table
CREATE SOURCE TABLE T (ID INT PRIMARY KEY, A BIGINT) WITH (kafka_topic='t', value_format='JSON');
INSERT INTO T VALUES (1, 1);

--@test: an offset cannot be inserted
--@expected.message: Inserting into column ROWOFFSET is not allowed
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S (ID, A, ROWOFFSET) VALUES (1, 1, 1);

--@test: headers are bytes
--@expected.message: Invalid type for HEADER('h') column: expected BYTES
CREATE STREAM S (ID INT KEY, H STRING HEADER('h')) WITH (kafka_topic='s', value_format='JSON');

--@test: a null without a type
--@expected.message: is always NULL and so has no type
CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, NULL AS N FROM S;

--@test: two streams of one topic are not joined
--@expected.message: read the same topic
CREATE STREAM A (ID INT KEY, X BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM B (ID INT KEY, Y BIGINT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT A.ID, X, Y FROM A JOIN B WITHIN 1 SECOND ON A.ID = B.ID;
