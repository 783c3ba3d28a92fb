-- psql URL -v token=…: a script that changes three books in a transaction.
\set ON_ERROR_STOP on
\set VERBOSITY sqlstate
BEGIN;
SELECT :'token' <> '' AS fenced \gset
\if :fenced
-- sqlfence {
SELECT set_config('sqlfence.tokens', concat(:'token', ' ', txid_current()), true) \g /dev/null
-- sqlfence }
\endif
UPDATE books SET price = 30 WHERE id = 1;
INSERT INTO books (id, title, price) VALUES (3, 'three', 33);
DELETE FROM books WHERE id = 2;
COMMIT;
\echo ok
