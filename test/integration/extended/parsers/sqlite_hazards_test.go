package parsers

// sqliteHazards are statements that a parser of SQL could misread.
var sqliteHazards = []string{
	// Names, and strings in place of names.
	"DELETE FROM 'books'", `DELETE FROM "books"`, "DELETE FROM [books]", "DELETE FROM `books`", "DELETE FROM 'main'.'books'", "DELETE FROM[books]WHERE[id]=1", "UPDATE'books'SET'title'=1", "INSERT INTO'books'('title')VALUES(1)", "INSERT INTO books('title')SELECT's'",
	"WITH books AS (SELECT 1 AS id) DELETE FROM books", "WITH 'books' AS (SELECT 1) UPDATE books SET n = 1", "UPDATE books AS 'set' SET n = 'set'.n", "UPDATE books AS [where] SET n = [where].n WHERE [where].id = 1",

	// Byte order marks and other white space.
	"\uFEFFDELETE FROM books", "DELETE\uFEFFFROM\uFEFFbooks", "\uFEFF;\uFEFFDELETE FROM books", "DELETE FROM books -- \r WHERE id = 1", "DELETE FROM books /* x", "DELETE FROM books /**/ WHERE /*/ */ id = 1", "DELETE FROM books;", "; ;DELETE FROM books", "SELECT 1; DELETE FROM books", "DELETE FROM books\f",

	// Placeholders.
	"UPDATE books SET n = :n(x) WHERE id = 1", "UPDATE books SET n = $a::b(x y) WHERE id = 1", "UPDATE books SET n = $a::(x) WHERE id = ?", "UPDATE books SET n = @books WHERE id = :books", "UPDATE books SET n = #x", "UPDATE books SET n = ?5, price = ? WHERE id = ?1", "UPDATE books SET n=?WHERE id=?", "DELETE FROM books WHERE?=id", "DELETE FROM books WHERE id=?AND n=?2",
	"INSERT INTO books(title)VALUES(?),(?3),(?)", "INSERT INTO books(title)SELECT?FROM src", "UPDATE books SET n = ? WHERE random() AND id = ? AND n = ?",

	// Optional spaces are missing.
	"DELETE FROM books WHERE(id=1)", "UPDATE books SET n='x'WHERE id=1", "UPDATE books SET n=(1)WHERE(1)", "DELETE FROM books WHERE(random())RETURNING id", "INSERT INTO books(title)SELECT(1)FROM src", "INSERT INTO books(title)SELECT'x'FROM src", "DELETE FROM books WHERE 1--", "INSERT INTO books(title)VALUES(1)ON CONFLICT(id)DO UPDATE SET n=(1)WHERE(1)", "REPLACE INTO books(title)VALUES(1)", "INSERT INTO[books]DEFAULT VALUES", "INSERT INTO books(title)VALUES(1)RETURNING*",

	// Words that are keywords only in some places.
	"INSERT INTO books (title, n) SELECT s_id, offset FROM src", "INSERT INTO books (title) SELECT offset FROM src", "INSERT INTO books (title) SELECT end FROM src", "INSERT INTO books (title) SELECT CASE WHEN end THEN end ELSE end END end FROM src WHERE 1", "INSERT INTO books (title) SELECT conflict FROM src WHERE conflict ON CONFLICT DO NOTHING", "INSERT INTO books (title) SELECT window FROM src", "INSERT INTO books (title) SELECT key AS do FROM src WHERE 1 ON CONFLICT DO UPDATE SET n = 1",
	"INSERT INTO books (title) SELECT src.\"from\" FROM src JOIN other ON conflict WHERE 1 ON CONFLICT DO NOTHING", "INSERT INTO books (title) SELECT s_id FROM src JOIN other ON conflict", "INSERT INTO books (title) SELECT 1 AS replace FROM src", "UPDATE books SET n = CASE WHEN n THEN 1 END WHERE n", "UPDATE books SET n = (SELECT end FROM src) WHERE n", "DELETE FROM books WHERE random() AND n IN (SELECT end FROM src) AND id = 1", "UPDATE books SET n = n IS DISTINCT FROM 1 FROM src WHERE n IS NOT DISTINCT FROM 2",

	// Statement forms.
	"EXPLAIN DELETE FROM books", "EXPLAIN QUERY PLAN DELETE FROM books", "INSERT INTO books DEFAULT VALUES", "INSERT INTO books VALUES (1,2,3,4,5,6,7,8)", "INSERT INTO books (title) VALUES (1) ON CONFLICT (id) DO UPDATE SET n = 1 WHERE n > 1 ON CONFLICT (shelf) WHERE n > 1 DO UPDATE SET n = 2 ON CONFLICT DO NOTHING", "INSERT INTO books (title) SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3 ORDER BY 1 LIMIT 1",
	"INSERT INTO books (title) WITH q AS (SELECT 1) SELECT * FROM q", "WITH q AS (SELECT 1) INSERT INTO books (title) WITH r AS (SELECT * FROM q) SELECT * FROM r", "UPDATE OR FAIL books SET n = 1", "UPDATE OR IGNORE books SET n = 1", "INSERT OR ROLLBACK INTO books (title) VALUES (1)", "UPDATE books INDEXED BY books_title SET n = 1 WHERE title = 'a'", "DELETE FROM books NOT INDEXED WHERE id = 1 ORDER BY id LIMIT 1", "UPDATE books SET n = 1 FROM src JOIN v USING (s_id) WHERE src.s_id = id",
	"DROP TABLE books", "ALTER TABLE main.books RENAME TO x", "CREATE TRIGGER t AFTER INSERT ON other BEGIN DELETE FROM books; END", "CREATE TEMP TABLE x AS SELECT * FROM books", "PRAGMA table_info(books)", "SELECT 'delete', \"insert\" FROM books", "SELECT replace(title, 'a', 'b') FROM books", "VALUES (1)", "SELECT books.* FROM books", "BEGIN; DELETE FROM books", "ANALYZE books", "REINDEX books",
	"DELETE FROM books WHERE id = 1 AND random() OR n", "DELETE FROM books WHERE id BETWEEN 1 AND 2 AND random() AND n NOT BETWEEN CASE WHEN n AND 1 THEN 1 END AND 2", "DELETE FROM books WHERE title LIKE 'a' ESCAPE '!' AND random()", "DELETE FROM books WHERE id = 1) OR (1",
}
