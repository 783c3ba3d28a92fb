package verify_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/verify"
)

// A provocation causes exactly one finding.
type provocation struct {
	name     string
	severity slog.Level
	code     string
	says     string // a part of the problem or the remedy

	rules []sqlfence.Rule // the rules of books; nil for RowFence and Ledger
	table string          // the registered table; empty for books

	postgres, sqlite, mysql []string // statements; nil if the database can't have the fault
	repairs                 bool     // the finding's SQL repairs the fault
}

var none = []string{}

var both = []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}

var claim = []sqlfence.Rule{sqlfence.Key("id"), sqlfence.Claim("attempt")}

var provocations = []provocation{
	{"misspelt table", slog.LevelError, "missing-table", "Did you mean books?", both, "bokos", none, none, none, false},
	{"table of a schema that isn't there", slog.LevelError, "missing-table", "nowhere.books", both, "nowhere.books", none, none, none, false},
	{"misspelt column", slog.LevelError, "missing-column", "Did you mean fence_token?", []sqlfence.Rule{sqlfence.RowFence("fence_tokne")}, "", none, none, none, true},
	{"no serial", slog.LevelError, "missing-column", "the serial column", []sqlfence.Rule{sqlfence.Serial("version")}, "", none, none, none, true},
	{"no key", slog.LevelError, "missing-column", "the key column", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("isbn")}, "", none, none, none, false},
	{"no lock", slog.LevelError, "missing-column", "the lock column", []sqlfence.Rule{sqlfence.EditLock("editedby", "since", "editedexpiry")}, "", none, none, none, true},
	{"narrow fence", slog.LevelWarn, "wrong-column", "is of the type int", both, "",
		[]string{"ALTER TABLE books ALTER COLUMN fence_token TYPE integer"}, nil, []string{"ALTER TABLE books MODIFY COLUMN fence_token int NOT NULL DEFAULT 0"}, true},
	{"narrow serial", slog.LevelWarn, "wrong-column", "serial column version of table books is of the type int", []sqlfence.Rule{sqlfence.Serial("version")}, "",
		nil, nil, []string{"ALTER TABLE books ADD COLUMN version int NOT NULL DEFAULT 1"}, true},
	{"narrow claim", slog.LevelWarn, "wrong-column", "claim column attempt of table books is of the type int", claim, "",
		nil, nil, []string{"ALTER TABLE books ADD COLUMN attempt int NOT NULL DEFAULT 0"}, true},
	{"claim of another type", slog.LevelError, "wrong-column", "claim column attempt of table books is of the type", claim, "",
		[]string{"ALTER TABLE books ADD COLUMN attempt real NOT NULL DEFAULT 0"}, nil, []string{"ALTER TABLE books ADD COLUMN attempt float NOT NULL DEFAULT 0"}, true},
	{"claim of texts", slog.LevelError, "wrong-column", "claim column title of table books is of the type", []sqlfence.Rule{sqlfence.Key("id"), sqlfence.Claim("title")}, "",
		none, none, none, false},
	{"fence of another type", slog.LevelError, "wrong-column", "fence column fence_token of table books is of the type", both, "",
		[]string{"ALTER TABLE books ALTER COLUMN fence_token TYPE real"}, nil, []string{"ALTER TABLE books MODIFY COLUMN fence_token float NOT NULL DEFAULT 0"}, true},
	{"fence of texts", slog.LevelWarn, "wrong-column", "stored as texts", both, "",
		nil, []string{"DROP TABLE books", "CREATE TABLE books (id integer PRIMARY KEY, fence_token varchar(20) NOT NULL DEFAULT 0)"}, nil, false},
	{"serial of another type", slog.LevelError, "wrong-column", "serial column title of table books is of the type", []sqlfence.Rule{sqlfence.Serial("title")}, "", none, none, none, false},
	{"generated fence", slog.LevelError, "wrong-column", "fence column fence_token of table books is computed", both, "",
		[]string{"ALTER TABLE books DROP COLUMN fence_token", "ALTER TABLE books ADD COLUMN fence_token bigint GENERATED ALWAYS AS (price) STORED"},
		[]string{"ALTER TABLE books DROP COLUMN fence_token", "ALTER TABLE books ADD COLUMN fence_token bigint GENERATED ALWAYS AS (price) VIRTUAL"},
		[]string{"ALTER TABLE books DROP COLUMN fence_token", "ALTER TABLE books ADD COLUMN fence_token bigint GENERATED ALWAYS AS (price) STORED"}, false},
	{"generated key", slog.LevelWarn, "wrong-column", "weight of table books is computed of other columns", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("weight")}, "",
		[]string{"ALTER TABLE books ADD COLUMN weight bigint GENERATED ALWAYS AS (price) STORED"},
		[]string{"ALTER TABLE books ADD COLUMN weight bigint GENERATED ALWAYS AS (price) VIRTUAL"},
		[]string{"ALTER TABLE books ADD COLUMN weight bigint GENERATED ALWAYS AS (price) VIRTUAL"}, false},
	{"key that rounds", slog.LevelWarn, "wrong-column", "key column weight of table books is of the type double", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("weight")}, "",
		[]string{"ALTER TABLE books ADD COLUMN weight double precision"}, []string{"ALTER TABLE books ADD COLUMN weight double"}, []string{"ALTER TABLE books ADD COLUMN weight double"}, false},
	{"key that is padded", slog.LevelWarn, "wrong-column", "binary", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("code")}, "",
		nil, nil, []string{"ALTER TABLE books ADD COLUMN code binary(9)"}, false},
	{"key with zeros before it", slog.LevelWarn, "wrong-column", "zerofill", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("code")}, "",
		nil, nil, []string{"ALTER TABLE books ADD COLUMN code int(5) zerofill"}, false},
	{"key with a loose collation", slog.LevelWarn, "wrong-column", "title", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("title")}, "",
		[]string{"CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)", `ALTER TABLE books ALTER COLUMN title TYPE text COLLATE loose`}, nil, nil, false},
	{"time of a lock", slog.LevelError, "wrong-column", "lock column title of table books is of the type", []sqlfence.Rule{sqlfence.EditLock("editedby", "title", "editedexpiry")}, "", none, none, none, false},
	{"nullable fence", slog.LevelInfo, "wrong-column", "may be NULL", both, "",
		[]string{"ALTER TABLE books ALTER COLUMN fence_token DROP NOT NULL", "ALTER TABLE books ALTER COLUMN fence_token DROP DEFAULT"},
		[]string{"ALTER TABLE books DROP COLUMN fence_token", "ALTER TABLE books ADD COLUMN fence_token bigint"},
		[]string{"ALTER TABLE books MODIFY COLUMN fence_token bigint"}, false},
	{"default of the fence", slog.LevelWarn, "wrong-column", "has the default", both, "",
		[]string{"ALTER TABLE books ALTER COLUMN fence_token SET DEFAULT 7"},
		[]string{"ALTER TABLE books DROP COLUMN fence_token", "ALTER TABLE books ADD COLUMN fence_token bigint NOT NULL DEFAULT 7"},
		[]string{"ALTER TABLE books ALTER COLUMN fence_token SET DEFAULT 7"}, false},
	{"no default for new rows", slog.LevelError, "wrong-column", "UnfencedInserts", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.UnfencedInserts()}, "",
		[]string{"ALTER TABLE books ALTER COLUMN fence_token DROP DEFAULT"},
		[]string{"DROP TABLE books", "CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint NOT NULL)"},
		[]string{"ALTER TABLE books ALTER COLUMN fence_token DROP DEFAULT"}, false},
	{"no default", slog.LevelInfo, "wrong-column", "NOT NULL", both, "",
		[]string{"ALTER TABLE books ALTER COLUMN fence_token DROP DEFAULT"},
		[]string{"DROP TABLE books", "CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint NOT NULL)"},
		[]string{"ALTER TABLE books ALTER COLUMN fence_token DROP DEFAULT"}, false},

	{"fence in the primary key", slog.LevelWarn, "wrong-column", "primary key", both, "",
		[]string{"ALTER TABLE books DROP CONSTRAINT books_pkey", "ALTER TABLE books ADD PRIMARY KEY (id, fence_token)"},
		[]string{"DROP TABLE books", "CREATE TABLE books (id integer, fence_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, fence_token))"},
		[]string{"ALTER TABLE books DROP PRIMARY KEY, ADD PRIMARY KEY (id, fence_token)"}, false},
	{"fence as the primary key", slog.LevelWarn, "wrong-column", "primary key", []sqlfence.Rule{sqlfence.RowFence("fence_token")}, "",
		nil, []string{"DROP TABLE books", "CREATE TABLE books (id integer, fence_token INTEGER PRIMARY KEY DEFAULT 0 NOT NULL)"}, nil, false},
	{"fence in a unique index", slog.LevelWarn, "wrong-column", "unique index titles", both, "", uniqueMark, uniqueMark, uniqueMark, false},
	{"fence in an exclusion constraint", slog.LevelWarn, "wrong-column", "exclusion constraint", both, "",
		[]string{"ALTER TABLE books ADD CONSTRAINT marks EXCLUDE USING btree (fence_token WITH =)"}, nil, nil, false},
	{"fence in the condition of a unique index", slog.LevelWarn, "wrong-column", "read by the unique index titles", both, "",
		[]string{"CREATE UNIQUE INDEX titles ON books (title) WHERE fence_token = 0"}, []string{"CREATE UNIQUE INDEX titles ON books (title) WHERE fence_token = 0"}, nil, false},
	{"fence in the condition of an index", slog.LevelInfo, "wrong-column", "read by the index titles", both, "",
		[]string{"CREATE INDEX titles ON books (title) WHERE fence_token > 0"}, []string{`CREATE INDEX titles ON books (title) WHERE "Fence_Token" > 0`}, nil, false},
	{"fence in the expression of a unique index", slog.LevelWarn, "wrong-column", "read by the unique index titles", both, "",
		[]string{"CREATE UNIQUE INDEX titles ON books (title, (fence_token + 1))"}, []string{"CREATE UNIQUE INDEX titles ON books (title, fence_token + 1)"}, nil, false},
	{"fence in a generated column of a unique index", slog.LevelWarn, "wrong-column", "read by the unique index titles", both, "",
		[]string{"ALTER TABLE books ADD COLUMN twice bigint GENERATED ALWAYS AS (fence_token * 2) STORED", "CREATE UNIQUE INDEX titles ON books (title, twice)"}, nil,
		[]string{"ALTER TABLE books ADD COLUMN twice bigint GENERATED ALWAYS AS (fence_token * 2) STORED", "CREATE UNIQUE INDEX titles ON books (title, twice)"}, false},
	{"fence in a foreign key", slog.LevelWarn, "wrong-column", "foreign key", both, "",
		[]string{"CREATE TABLE days (id bigint PRIMARY KEY)", "ALTER TABLE books ADD FOREIGN KEY (fence_token) REFERENCES days (id)"},
		[]string{"DROP TABLE books", "CREATE TABLE books (id integer PRIMARY KEY, fence_token bigint NOT NULL DEFAULT 0 REFERENCES pens (id))"},
		[]string{"CREATE TABLE days (id bigint PRIMARY KEY)", "ALTER TABLE books ADD FOREIGN KEY (fence_token) REFERENCES days (id)"}, false},
	{"fence as the key of partitions", slog.LevelWarn, "wrong-column", "partition key", both, "",
		[]string{"DROP TABLE books", "CREATE TABLE books (id integer, fence_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (fence_token)"}, nil, nil, false},

	{"no ledger", slog.LevelError, "missing-ledger", "fencing_tokens", both, "", []string{dropLedger}, []string{dropLedger}, []string{dropLedger}, true},
	{"ledger without unique names", slog.LevelError, "wrong-ledger", "unique", both, "",
		[]string{dropLedger, "CREATE TABLE fencing_tokens (name text, token bigint)"}, []string{dropLedger, "CREATE TABLE fencing_tokens (name text, token bigint)"},
		[]string{dropLedger, "CREATE TABLE fencing_tokens (name varbinary(512), token bigint) ENGINE=InnoDB"}, false},
	{"ledger of texts", slog.LevelError, "wrong-ledger", "token", both, "",
		[]string{dropLedger, "CREATE TABLE fencing_tokens (name text PRIMARY KEY, token numeric)"}, nil,
		[]string{dropLedger, "CREATE TABLE fencing_tokens (name varchar(512) PRIMARY KEY, token int) ENGINE=InnoDB"}, false},
	{"ledger without token", slog.LevelError, "wrong-ledger", "no column token", both, "",
		[]string{"ALTER TABLE fencing_tokens RENAME COLUMN token TO number"}, []string{"ALTER TABLE fencing_tokens RENAME COLUMN token TO number"},
		[]string{"ALTER TABLE fencing_tokens RENAME COLUMN token TO number"}, false},
	{"ledger with a trigger less", slog.LevelWarn, "wrong-ledger", "is missing", both, "", []string{"DROP TRIGGER sqlfence_turn_v1 ON fencing_tokens"},
		[]string{"DROP TRIGGER sqlfence_ledger_update_v1"}, []string{"DROP TRIGGER sqlfence_ledger_update_v1"}, false},
	{"ledger with its triggers off", slog.LevelWarn, "wrong-ledger", "ENABLE ALWAYS", both, "", []string{"ALTER TABLE fencing_tokens ENABLE TRIGGER sqlfence_kept_v1"}, nil, nil, false},
	{"ledger with other triggers", slog.LevelWarn, "wrong-ledger", "Setup creates", both, "",
		[]string{"CREATE OR REPLACE FUNCTION sqlfence_turn_v1() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL; END'"},
		[]string{"DROP TRIGGER sqlfence_ledger_delete_v1", "CREATE TRIGGER sqlfence_ledger_delete_v1 BEFORE DELETE ON fencing_tokens BEGIN SELECT 1; END"},
		[]string{"DROP TRIGGER sqlfence_ledger_delete_v1", "CREATE TRIGGER sqlfence_ledger_delete_v1 BEFORE DELETE ON fencing_tokens FOR EACH ROW SET @x = 1"}, false},
	{"ledger with a cascade", slog.LevelWarn, "wrong-ledger", "ON UPDATE CASCADE", both, "", nil, nil,
		[]string{"CREATE TABLE owners AS SELECT name FROM fencing_tokens", "ALTER TABLE owners ADD PRIMARY KEY (name)", "ALTER TABLE fencing_tokens ADD FOREIGN KEY (name) REFERENCES owners (name) ON UPDATE CASCADE"}, false},
	{"ledger with another function", slog.LevelWarn, "wrong-ledger", "isn't what Setup", both, "", []string{"ALTER FUNCTION sqlfence_newest_v2 SECURITY DEFINER"}, nil, nil, false},
	{"narrow ledger", slog.LevelWarn, "wrong-ledger", "integer", both, "",
		[]string{"ALTER TABLE fencing_tokens ALTER COLUMN token TYPE integer"}, nil, nil, false},
	{"ledger that a crash empties", slog.LevelError, "wrong-ledger", "UNLOGGED", both, "",
		[]string{"ALTER TABLE fencing_tokens SET UNLOGGED"}, nil, nil, false},
	{"ledger with loose names", slog.LevelError, "wrong-ledger", "equal", both, "",
		[]string{"CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)", "ALTER TABLE fencing_tokens ALTER COLUMN name TYPE text COLLATE loose"},
		[]string{dropLedger, "CREATE TABLE fencing_tokens (name text PRIMARY KEY COLLATE NOCASE, token bigint NOT NULL)"},
		[]string{"ALTER TABLE fencing_tokens MODIFY COLUMN name varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL"}, false},

	{"registered view", slog.LevelError, "storage", "view", both, "shelf",
		[]string{"CREATE VIEW shelf AS SELECT id, price, fence_token FROM pens_with_marks"}, nil, nil, false},
	{"unlogged table", slog.LevelWarn, "storage", "UNLOGGED", both, "", []string{"ALTER TABLE books SET UNLOGGED"}, nil, nil, true},
	{"engine", slog.LevelError, "storage", "MyISAM", both, "", nil, nil, []string{"ALTER TABLE books ENGINE = MyISAM"}, true},
	{"declared conflict", slog.LevelWarn, "storage", "ON CONFLICT REPLACE", both, "", nil,
		[]string{"DROP TABLE books", "CREATE TABLE books (id integer PRIMARY KEY ON CONFLICT REPLACE, fence_token bigint NOT NULL DEFAULT 0)"}, nil, false},

	{"view", slog.LevelWarn, "other-name", "view cheap", both, "", []string{"CREATE VIEW cheap AS SELECT id, price FROM books WHERE price < 10"},
		nil, []string{"CREATE VIEW cheap AS SELECT id, price FROM books WHERE price < 10"}, false},
	{"rule", slog.LevelWarn, "side-effect", "rule also", both, "", []string{"CREATE RULE also AS ON UPDATE TO pens DO ALSO UPDATE books SET price = 1"}, nil, nil, false},
	{"rule of its own", slog.LevelWarn, "side-effect", "rule also", both, "", []string{"CREATE RULE also AS ON UPDATE TO books DO ALSO UPDATE pens SET price = 1"}, nil, nil, false},
	{"cascade", slog.LevelWarn, "side-effect", "ON DELETE CASCADE", both, "",
		[]string{"ALTER TABLE books ADD COLUMN pen integer REFERENCES pens ON DELETE CASCADE"},
		[]string{"ALTER TABLE books ADD COLUMN pen integer REFERENCES pens ON DELETE CASCADE"},
		[]string{"ALTER TABLE books ADD COLUMN pen integer, ADD FOREIGN KEY (pen) REFERENCES pens (id) ON DELETE CASCADE"}, false},
	{"partitions", slog.LevelWarn, "other-name", "partitions books_1, books_2", both, "",
		[]string{"DROP TABLE books", "CREATE TABLE books (id integer, fence_token bigint NOT NULL DEFAULT 0) PARTITION BY HASH (id)",
			"CREATE TABLE books_1 PARTITION OF books FOR VALUES WITH (MODULUS 2, REMAINDER 0)", "CREATE TABLE books_2 PARTITION OF books FOR VALUES WITH (MODULUS 2, REMAINDER 1)"}, nil, nil, false},
	{"parent", slog.LevelWarn, "other-name", "parent table papers", both, "",
		[]string{"ALTER TABLE books INHERIT papers"}, nil, nil, false},
	{"child", slog.LevelWarn, "other-name", "child table novels", both, "", []string{"CREATE TABLE novels () INHERITS (books)"}, nil, nil, false},
	{"trigger", slog.LevelWarn, "side-effect", "on pens writes to table books", both, "",
		[]string{"CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE books SET price = NEW.price; RETURN NULL; END $$",
			"CREATE TRIGGER touch AFTER UPDATE ON pens FOR EACH ROW EXECUTE FUNCTION touch()"},
		[]string{"CREATE TRIGGER touch AFTER UPDATE ON pens BEGIN UPDATE books SET price = NEW.price; END"},
		[]string{"CREATE TRIGGER touch AFTER UPDATE ON pens FOR EACH ROW UPDATE books SET price = NEW.price"}, false},
	{"trigger that sets the mark", slog.LevelWarn, "side-effect", "sets the fence column", both, "",
		[]string{"CREATE FUNCTION reset() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.fence_token := 0; RETURN NEW; END $$",
			"CREATE TRIGGER reset BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION reset()"}, nil,
		[]string{"CREATE TRIGGER reset BEFORE UPDATE ON books FOR EACH ROW SET NEW.fence_token = 0"}, false},
	{"trigger that sets the claim", slog.LevelWarn, "side-effect", "sets the claim column", claim, "",
		[]string{"ALTER TABLE books ADD COLUMN attempt bigint NOT NULL DEFAULT 0",
			"CREATE FUNCTION reset() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.attempt := OLD.attempt; RETURN NEW; END $$",
			"CREATE TRIGGER reset BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION reset()"}, nil,
		[]string{"ALTER TABLE books ADD COLUMN attempt bigint NOT NULL DEFAULT 0", "CREATE TRIGGER reset BEFORE UPDATE ON books FOR EACH ROW SET NEW.attempt = OLD.attempt"}, false},
	{"function", slog.LevelWarn, "side-effect", "Function raise_prices writes", both, "",
		[]string{"CREATE FUNCTION raise_prices() RETURNS void LANGUAGE sql AS 'UPDATE books SET price = price + 1'"}, nil, nil, false},
	{"function of SQL's own form", slog.LevelWarn, "side-effect", "Function raise_prices writes", both, "",
		[]string{"CREATE FUNCTION raise_prices() RETURNS void LANGUAGE sql BEGIN ATOMIC UPDATE books SET price = price + 1; END"}, nil, nil, false},
	{"procedure", slog.LevelWarn, "side-effect", "Procedure raise_prices writes", both, "",
		[]string{"CREATE PROCEDURE raise_prices() LANGUAGE sql AS 'UPDATE books SET price = price + 1'"}, nil, []string{"CREATE PROCEDURE raise_prices() UPDATE books SET price = price + 1"}, false},
	{"write of joined tables", slog.LevelWarn, "side-effect", "Procedure raise_prices writes", both, "",
		nil, nil, []string{"CREATE PROCEDURE raise_prices() UPDATE pens JOIN books ON books.id = pens.id SET books.price = pens.price"}, false},
	{"event", slog.LevelWarn, "side-effect", "Event nightly", both, "",
		nil, nil, []string{"CREATE EVENT nightly ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO DELETE FROM books"}, false},
	{"function that makes SQL", slog.LevelWarn, "side-effect", "runs SQL that it makes", both, "",
		[]string{"CREATE FUNCTION raise_prices() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET price = 1', 'books'); END $$"}, nil, nil, false},
	{"code that can't be read", slog.LevelWarn, "side-effect", "names table books and can't be read", both, "",
		[]string{`CREATE FUNCTION dearest() RETURNS integer LANGUAGE sql AS $$ SELECT max(price) AS U&"d!0061ta" UESCAPE '!' FROM books $$`}, nil, nil, false},
	{"function that reads", slog.LevelInfo, "side-effect", "no write", both, "",
		[]string{"CREATE FUNCTION dearest() RETURNS integer LANGUAGE sql AS 'SELECT max(price) FROM books -- UPDATE books'"}, nil,
		[]string{"CREATE FUNCTION dearest() RETURNS integer READS SQL DATA RETURN (SELECT max(price) FROM books /* UPDATE books */)"}, false},

	{"negative mark", slog.LevelWarn, "wrong-mark", "token below 0, such as -5", both, "", insertMark("-5"), insertMark("-5"), insertMark("-5"), false},
	{"mark above the ledger", slog.LevelError, "wrong-mark", "row that stores token 8", both, "", insertMark("8"), insertMark("8"), insertMark("8"), false},
	{"mark near the highest token", slog.LevelError, "wrong-mark", "stores token 800000000000000", both, "", insertMark("800000000000000"), insertMark("800000000000000"), insertMark("800000000000000"), false},
	{"mark above those of the keys", slog.LevelError, "wrong-mark", "books/", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}, "", insertKeyMark("8"), insertKeyMark("8"), insertKeyMark("8"), false},
}

var uniqueMark = []string{"CREATE UNIQUE INDEX titles ON books (title, fence_token)"}

const dropLedger = "DROP TABLE fencing_tokens"

func insertMark(mark string) []string {
	return []string{"INSERT INTO fencing_tokens (name, token) VALUES ('books', 7), ('book', 99)", "INSERT INTO books (id, fence_token) VALUES (1, " + mark + "), (2, 7)"}
}

func insertKeyMark(mark string) []string {
	return []string{"INSERT INTO fencing_tokens (name, token) VALUES ('books/1', 7), ('books/2', 3), ('books', 99), ('bookst/1', 99)", "INSERT INTO books (id, fence_token) VALUES (1, " + mark + "), (2, 3)"}
}

// Each provocation gives its finding and no other finding, and the finding's SQL repairs the defect, if it has SQL.
func TestFindings(t *testing.T) {
	for _, p := range provocations {
		t.Run(p.name, func(t *testing.T) {
			for _, b := range bases {
				if b.Name == "pq" || testing.Short() && !b.IsUsual() { // pq is sent the queries that pgx is
					continue
				}
				statements := map[sqlfence.Dialect][]string{sqlfence.Postgres: p.postgres, sqlfence.SQLite: p.sqlite, sqlfence.MySQL: p.mysql}[b.Dialect]
				if statements == nil {
					continue
				}
				t.Run(b.Name, func(t *testing.T) { p.run(t, newWorld(t, b), statements) })
			}
		})
	}
}

func (p provocation) run(t *testing.T, w *world, statements []string) {
	switch p.name {
	case "registered view":
		w.exec(t, "CREATE TABLE pens_with_marks (id integer, price integer, fence_token bigint NOT NULL DEFAULT 0)")
	case "parent":
		w.exec(t, "CREATE TABLE papers (id integer NOT NULL)")
	}
	w.exec(t, statements...)
	name := p.table
	if name == "" {
		name = "books"
	}
	registered := sqlfence.WithTable(name, p.rules...)
	found := w.news(t, registered)
	if len(found) != 1 {
		t.Fatalf("found %d, want 1:\n%v", len(found), found)
	}
	f := found[0]
	want := p.severity
	if w.AsksByFunction() && strings.HasPrefix(p.name, "ledger with ") {
		want = slog.LevelError // without the function and its triggers this database's guarded writes are refused
	}
	if f.Level != want || f.Code != p.code || f.Table != name || !strings.Contains(f.Problem+f.Remedy, p.says) {
		t.Errorf("found %q of table %s, want %v, %s, with %q", f, f.Table, want, p.code, p.says)
	}
	t.Log(f)
	if !p.repairs {
		return
	}
	w.exec(t, f.SQL)
	// The finding's SQL creates the ledger's table. Setup creates the ledger's triggers, so findings about these
	// triggers may remain.
	left := slices.DeleteFunc(w.news(t, registered), func(f verify.Finding) bool { return strings.Contains(f.Problem, "trigger sqlfence_") })
	if len(left) > 0 {
		t.Errorf("after %s there is left %v", f.SQL, left)
	}
}
