-- Stock prices: big trades by themselves, totals of each stock, and what each minute brought.
--
--     penstock sql -f examples/sql/stock_prices.sql
--
-- The page may run once for a service; DROP ... DELETE TOPIC takes its streams and tables away.

SET 'auto.offset.reset' = 'earliest';

CREATE STREAM trades (symbol VARCHAR KEY, price DOUBLE, quantity INT)
  WITH (KAFKA_TOPIC='trades', VALUE_FORMAT='JSON', PARTITIONS=2);

-- A filter and a projection: one record in, at most one out.
CREATE STREAM big_trades WITH (KAFKA_TOPIC='big-trades') AS
  SELECT symbol, price, price * quantity AS amount FROM trades WHERE quantity >= 100;

-- A table has one row for each key, the newest.
CREATE TABLE totals AS
  SELECT symbol, COUNT(*) AS trades, SUM(quantity) AS quantity FROM trades GROUP BY symbol;

-- With a window the key is the symbol and the minute.
CREATE TABLE per_minute AS
  SELECT symbol, COUNT(*) AS trades, MAX(price) AS highest FROM trades
  WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY symbol;

INSERT INTO trades (symbol, price, quantity) VALUES ('ZINC', 12.5, 20);
INSERT INTO trades (symbol, price, quantity) VALUES ('ZINC', 12.75, 300);
INSERT INTO trades (symbol, price, quantity) VALUES ('IRON', 7.0, 100);
INSERT INTO trades (symbol, price, quantity) VALUES ('ZINC', 12.25, 99);

-- A push query shows what comes; this one ends with the second big trade.
SELECT symbol, amount FROM big_trades EMIT CHANGES LIMIT 2;

-- Ask later, as often as you like:
--     SELECT * FROM totals WHERE symbol = 'ZINC';
--     SELECT symbol, WINDOWSTART, trades, highest FROM per_minute WHERE symbol = 'ZINC';
