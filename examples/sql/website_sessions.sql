-- Website sessions: the clicks of a person, with less than 30 minutes between them, are a visit.
--
--     penstock sql -f examples/sql/website_sessions.sql
--
-- A click counts at its own time, which stands in the column `at`, and not when it was written.

SET 'auto.offset.reset' = 'earliest';

CREATE STREAM clicks (person VARCHAR KEY, page VARCHAR, at VARCHAR)
  WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON', PARTITIONS=1,
        TIMESTAMP='at', TIMESTAMP_FORMAT='yyyy-MM-dd''T''HH:mm:ssX');

-- A visit is told once, when it is over: 30 minutes and 10 more for late clicks have passed.
CREATE TABLE visits AS
  SELECT person,
         FORMAT_TIMESTAMP(FROM_UNIXTIME(WINDOWSTART), 'HH:mm') AS began,
         (WINDOWEND - WINDOWSTART) / 1000 AS seconds,
         COLLECT_LIST(page) AS pages,
         ARRAY_CONTAINS(COLLECT_LIST(page), '/thanks') AS bought
  FROM clicks
  WINDOW SESSION (30 MINUTES, GRACE PERIOD 10 MINUTES)
  GROUP BY person
  EMIT FINAL;

-- How often a page was seen changes with every click.
CREATE TABLE pages AS
  SELECT page, COUNT(*) AS views, COUNT_DISTINCT(person) AS people
  FROM clicks GROUP BY page;

INSERT INTO clicks VALUES ('ada', '/', '2026-03-02T09:00:00Z');
INSERT INTO clicks VALUES ('ben', '/', '2026-03-02T09:01:00Z');
INSERT INTO clicks VALUES ('ada', '/lamps', '2026-03-02T09:02:10Z');
INSERT INTO clicks VALUES ('ada', '/cart', '2026-03-02T09:04:00Z');
INSERT INTO clicks VALUES ('ben', '/chairs', '2026-03-02T09:05:30Z');
INSERT INTO clicks VALUES ('ada', '/thanks', '2026-03-02T09:06:00Z');
INSERT INTO clicks VALUES ('ben', '/', '2026-03-02T10:15:00Z');
INSERT INTO clicks VALUES ('cleo', '/', '2026-03-02T12:00:00Z');
INSERT INTO clicks VALUES ('dora', '/', '2026-03-02T15:00:00Z');

-- Four visits are over; that of dora is not, as nobody has clicked since.
SELECT person, began, seconds, bought FROM visits EMIT CHANGES LIMIT 4;

-- Ask later:
--     SELECT began, pages FROM visits WHERE person = 'ada';
--     SELECT * FROM pages WHERE page = '/';
