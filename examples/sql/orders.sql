-- Orders: each gets the name and the city of its customer, and the shops' sums are kept.
--
--     penstock sql -f examples/sql/orders.sql
--
-- Customers are a table: the newest record of each key. An order meets the row that is there when
-- it comes, so a customer who moves is found in the new city from then on.

SET 'auto.offset.reset' = 'earliest';

CREATE TABLE customers (customer VARCHAR PRIMARY KEY, name VARCHAR, city VARCHAR)
  WITH (KAFKA_TOPIC='customers', VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE STREAM orders (id INT KEY, customer VARCHAR, cents BIGINT, items ARRAY<VARCHAR>)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', PARTITIONS=2);

INSERT INTO customers VALUES ('ada', 'Ada Lovelace', 'London');
INSERT INTO customers VALUES ('ben', 'Ben Okri', 'Lagos');
INSERT INTO customers VALUES ('ben', 'Ben Okri', 'Minna');

-- A left join keeps the orders of customers whom nobody knows.
CREATE STREAM orders_enriched AS
  SELECT o.customer AS customer, o.id AS id, c.name AS name, c.city AS city,
         CAST(o.cents AS DOUBLE) / 100 AS dollars
  FROM orders o LEFT JOIN customers c ON o.customer = c.customer;

-- One row for each thing that was ordered, then how often each was.
CREATE STREAM ordered_items AS SELECT id, EXPLODE(items) AS item FROM orders;
CREATE TABLE items_sold AS SELECT item, COUNT(*) AS sold FROM ordered_items GROUP BY item;

-- What a city has spent, for cities with more than one order.
CREATE TABLE cities AS
  SELECT city, COUNT(*) AS orders, SUM(dollars) AS dollars
  FROM orders_enriched WHERE city IS NOT NULL GROUP BY city HAVING COUNT(*) > 1;

INSERT INTO orders VALUES (1, 'ada', 4200, ARRAY['lamp', 'bulb']);
INSERT INTO orders VALUES (2, 'ben', 1950, ARRAY['chair']);
INSERT INTO orders VALUES (3, 'zoe', 700, ARRAY['bulb']);
INSERT INTO orders VALUES (4, 'ada', 850, ARRAY['bulb']);

SELECT id, name, city, dollars FROM orders_enriched EMIT CHANGES LIMIT 4;

-- Ask later:
--     SELECT * FROM items_sold WHERE item = 'bulb';
--     SELECT * FROM cities;
