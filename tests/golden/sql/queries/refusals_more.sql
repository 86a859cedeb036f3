--@test: a word that is none
--@expected.message: 'SELEC' does not fit here
SELEC * FROM S;

--@test: a statement that ends too early
--@expected.message: the statement ends too early
CREATE STREAM S (ID INT KEY;

--@test: a text that does not end
--@expected.message: does not end
CREATE STREAM S (ID INT) WITH (kafka_topic='s);

--@test: a comma too many
--@expected.message: does not fit here
CREATE STREAM S (ID INT KEY,) WITH (kafka_topic='s', value_format='JSON');

--@test: a name that begins with a digit
--@expected.message: begins with a digit
CREATE STREAM 1S (ID INT KEY) WITH (kafka_topic='s', value_format='JSON');

--@test: an empty list
--@expected.message: does not fit here
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE A IN ();

--@test: a query within a query
--@expected.message: does not fit here
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM (SELECT * FROM S);

--@test: two FROM
--@expected.message: does not fit here
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S, S;

--@test: ORDER BY
--@expected.message: does not fit here
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S ORDER BY A;

--@test: UNION
--@expected.message: does not fit here
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S UNION SELECT * FROM S;

--@test: UPDATE
--@expected.message: does not fit here
UPDATE S SET A = 1;

--@test: an unknown function
--@expected.message: NOTHING
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, NOTHING(A) AS B FROM S;

--@test: a function with wrong arguments
--@expected.message: UCASE
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, UCASE(A) AS B FROM S;

--@test: a function with too many arguments
--@expected.message: LEN
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, LEN(G, G) AS B FROM S;

--@test: text and number
--@expected.message: Unsupported arithmetic types
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, G + A AS B FROM S;

--@test: a comparison of text and number
--@expected.message: Cannot compare
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE G > A;

--@test: a comparison with NULL
--@expected.message: Comparison with NULL not supported
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE A = NULL;

--@test: a condition of CASE that is a number
--@expected.message: WHEN
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, CASE WHEN A THEN 1 END AS B FROM S;

--@test: a CAST that is never possible
--@expected.message: Cast of
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, CAST(A AS ARRAY<INT>) AS B FROM S;

--@test: a field that a struct does not have
--@expected.message: field
CREATE STREAM S (ID INT KEY, P STRUCT<X INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, P->Y AS Y FROM S;

--@test: a field of a number
--@expected.message: Expected STRUCT type, but got BIGINT
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A->X AS X FROM S;

--@test: an item of a number
--@expected.message: A
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, A[1] AS X FROM S;

--@test: an array of different types
--@expected.message: operator does not exist: BIGINT = STRING (G)
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ARRAY[A, G] AS X FROM S;

--@test: an array without items
--@expected.message: Array constructor cannot be empty
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, ARRAY[] AS X FROM S;

--@test: a map without entries
--@expected.message: Map constructor cannot be empty
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, MAP() AS X FROM S;

--@test: a lambda with too many parameters
--@expected.message: Function 'TRANSFORM' does not accept parameters
CREATE STREAM S (ID INT KEY, L ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, TRANSFORM(L, (X, Y) => X) AS T FROM S;

--@test: a filter that is no truth
--@expected.message: the lambda must give BOOLEAN
CREATE STREAM S (ID INT KEY, L ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT ID, FILTER(L, X => X + 1) AS T FROM S;

--@test: HAVING that is a number
--@expected.message: Should evaluate to boolean
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT ID, COUNT(*) AS C FROM S GROUP BY ID HAVING SUM(A);

--@test: an aggregate in PARTITION BY
--@expected.message: aggregate
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT G, ID FROM S PARTITION BY COUNT(*);

--@test: PARTITION BY an unknown column
--@expected.message: cannot be resolved
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S PARTITION BY NOBODY;

--@test: GROUP BY an unknown column
--@expected.message: cannot be resolved
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT NOBODY, COUNT(*) AS C FROM S GROUP BY NOBODY;

--@test: WHERE of an unknown column
--@expected.message: WHERE column 'NOBODY' cannot be resolved
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM O AS SELECT * FROM S WHERE NOBODY > 1;

--@test: PARTITION BY and GROUP BY together
--@expected.message: PARTITION BY
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT G, COUNT(*) AS C FROM S GROUP BY G PARTITION BY G;

--@test: a stream as a table
--@expected.message: Your SELECT query produces a TABLE
CREATE TABLE T (ID INT PRIMARY KEY, A INT) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM O AS SELECT * FROM T;

--@test: a table in place of a stream
--@expected.message: same name already exists
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE S AS SELECT ID, COUNT(*) AS C FROM S GROUP BY ID;

--@test: a key of two columns as KAFKA
--@expected.message: The 'KAFKA' format only supports a single field
CREATE STREAM S (A INT KEY, B INT KEY, C INT) WITH (kafka_topic='s', value_format='JSON');

--@test: a group of two columns as KAFKA
--@expected.message: The 'KAFKA' format only supports a single field
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE O AS SELECT A, G, COUNT(*) AS C FROM S GROUP BY A, G;

--@test: a table of rows without values
--@expected.message: projection contains no value columns
CREATE TABLE T (ID INT PRIMARY KEY, A INT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE O AS SELECT ID FROM T;

--@test: a decimal without its size
--@expected.message: DECIMAL takes a precision and a scale
CREATE STREAM S (ID INT KEY, A DECIMAL) WITH (kafka_topic='s', value_format='JSON');

--@test: a decimal whose scale is larger than its precision
--@expected.message: DECIMAL precision must be >= scale
CREATE STREAM S (ID INT KEY, A DECIMAL(2, 4)) WITH (kafka_topic='s', value_format='JSON');

--@test: a value that does not fit
--@expected.message: A
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S VALUES (1, 3000000000);

--@test: a value that is an unknown column
--@expected.message: resolved
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S VALUES (1, NOBODY);

--@test: more values than columns
--@expected.message: Expected a value for each column
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON');
INSERT INTO S VALUES (1, 2, 3);

--@test: a row for nobody
--@expected.message: NOBODY does not exist
INSERT INTO NOBODY VALUES (1);

--@test: a window without its kind
--@expected.message: the statement ends too early
CREATE TABLE O AS SELECT ID FROM S WINDOW;

--@test: a timestamp column that is not there
--@expected.message: NOBODY
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON', timestamp='NOBODY');

--@test: replicas that cannot be
--@expected.message: replicas
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON', partitions=1, replicas=0);

--@test: a window size that is none
--@expected.message: Invalid duration: 'soon'
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON', window_type='TUMBLING', window_size='soon');

--@test: a window type that is none
--@expected.message: WINDOW_TYPE
CREATE STREAM S (ID INT KEY, A INT) WITH (kafka_topic='s', value_format='JSON', window_type='SLIDING');

--@test: a column is not altered away
--@expected.message: does not fit here
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
ALTER STREAM S DROP COLUMN A;

--@test: a stream is not altered as a table
--@expected.message: Incompatible
CREATE STREAM S (ID INT KEY, A BIGINT, G STRING) WITH (kafka_topic='s', value_format='JSON');
ALTER TABLE S ADD COLUMN B INT;

--@test: nothing to alter
--@expected.message: NOBODY does not exist
ALTER STREAM NOBODY ADD COLUMN B INT;
