package guarantees_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A wrong is a write of book 1, or of a new book, that the database refuses.
type wrong struct {
	harness.Write
	new  bool // it only adds rows: a row fence doesn't check these
	none bool // no row satisfies its condition
	ill  bool // its condition fails before the row fence is checked

	// SQLite evaluates a guard only for the rows that it finds by an index.
	seeks   bool // the index has no such row, so no guard is evaluated
	deletes bool // likewise, but only with a row fence

	// PostgreSQL may report the statement's own error before the guard reads the ledger. In a transaction this error
	// ends it.
	late  bool // its own error comes first, under Ledger alone
	plans bool // its own error comes first: from the server's planner, or from the driver when it prepares

	// MySQL stores an INSERT's values before the guard's, with a fence column and Ledger. Then either error may come
	// first.
	stores bool
	fails  bool // in PostgreSQL, under RowFence alone, its own error comes first
}

var wrongs = []wrong{
	{Write: harness.Write{Name: "update, unique", Query: "UPDATE books SET isbn = $1 WHERE id = $2", Args: []any{"i2", 1}}},
	{Write: harness.Write{Name: "update, check", Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{2000, 1}}},
	{Write: harness.Write{Name: "update, null", Query: "UPDATE books SET price = NULL WHERE id = $1", Args: []any{1}}},
	{Write: harness.Write{Name: "update, foreign key", Query: "UPDATE books SET writer = $1 WHERE id = $2", Args: []any{99, 1}}},
	{Write: harness.Write{Name: "update, division", Query: "UPDATE books SET price = price / (price - $1) WHERE id = $2", Args: []any{10, 1}}, fails: true},
	{Write: harness.Write{Name: "update, overflow", Query: "UPDATE books SET price = price + 2147483647 WHERE id = $1", Args: []any{1}}, fails: true},
	{Write: harness.Write{Name: "update, too long", Query: "UPDATE books SET isbn = $1 WHERE id = $2", Args: []any{"more than ten letters", 1}}, plans: true},
	{Write: harness.Write{Name: "update, cast", Query: "UPDATE books SET price = CAST(isbn AS decimal) WHERE id = $1", Args: []any{1}}, fails: true},
	{Write: harness.Write{Name: "update, condition", Query: "UPDATE books SET price = 5 WHERE price / (price - $1) > 0", Args: []any{10}}, ill: true},
	{Write: harness.Write{Name: "update, trigger", Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{666, 1}}},
	{Write: harness.Write{Name: "update of all", Query: "UPDATE books SET price = 2000"}},
	{Write: harness.Write{Name: "update, constant", Query: "UPDATE books SET price = 'x' WHERE id = $1", Args: []any{1}}, plans: true},
	{Write: harness.Write{Name: "update, no row", Query: "UPDATE books SET price = $1 WHERE id = $2", Args: []any{5, 99}}, none: true},
	{Write: harness.Write{Name: "update, no row by a constant", Query: "UPDATE books SET price = 5 WHERE books.isbn = 'i99'"}, none: true},
	{Write: harness.Write{Name: "update, no row of two conditions", Query: "UPDATE books SET price = 5 WHERE price = $1 AND id = 99", Args: []any{5}}, none: true},
	{Write: harness.Write{Name: "update, no row of a range", Query: "UPDATE books SET price = $1 WHERE id > $2", Args: []any{5, 99}}, none: true, seeks: true},
	{Write: harness.Write{Name: "delete, foreign key", Query: "DELETE FROM books WHERE id = $1", Args: []any{1}}},
	{Write: harness.Write{Name: "delete, no row", Query: "DELETE FROM books WHERE id = $1", Args: []any{99}}, none: true, deletes: true},
	{Write: harness.Write{Name: "upsert, unique", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET isbn = excluded.isbn", Args: []any{1, "i2"}}},
	{Write: harness.Write{Name: "upsert, check", Query: "INSERT INTO books (id, price) VALUES ($1, 5) ON CONFLICT (id) DO UPDATE SET price = 2000", Args: []any{1}}},
	{Write: harness.Write{Name: "insert, key", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, $2, $3)", Args: []any{1, "i9", 5}}, new: true},
	{Write: harness.Write{Name: "insert, null", Query: "INSERT INTO books (id, price) VALUES ($1, NULL)", Args: []any{9}}, new: true, stores: true},
	{Write: harness.Write{Name: "insert, check", Query: "INSERT INTO books (id, isbn, price) VALUES ($1, 'i9', 2000)", Args: []any{9}}, new: true},
	{Write: harness.Write{Name: "insert, too long", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2)", Args: []any{9, "more than ten letters"}}, new: true, plans: true, stores: true},
	{Write: harness.Write{Name: "insert, trigger", Query: "INSERT INTO books (id, price) VALUES ($1, $2)", Args: []any{9, 666}}, new: true},
	{Write: harness.Write{Name: "insert by a function", Query: "INSERT INTO books (id, isbn) VALUES ($1, lower('I2'))", Args: []any{9}}, new: true},
	{Write: harness.Write{Name: "insert of several", Query: "INSERT INTO books (id, isbn) VALUES ($1, $2), ($3, $4)", Args: []any{8, "i8", 1, "i9"}}, new: true, late: true},
	{Write: harness.Write{Name: "insert of several numbers", Query: "INSERT INTO books (isbn, id) VALUES ($1, 8), ($2, 1)", Args: []any{"i8", "i9"}}, new: true},
	{Write: harness.Write{Name: "insert from a query", Query: "INSERT INTO books (id, price) SELECT id, price FROM books WHERE id = $1", Args: []any{1}}, new: true},
	{Write: harness.Write{Name: "insert from a query of no row", Query: "INSERT INTO books (id, price) SELECT id, price FROM books WHERE id = $1", Args: []any{99}}, new: true, none: true},
	{Write: harness.Write{Name: "merge, check", Query: "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id WHEN MATCHED THEN UPDATE SET price = 2000", Args: []any{1}}},
	{Write: harness.Write{Name: "merge, key", Query: "MERGE INTO books USING (SELECT $1::int AS id) AS s ON books.id = s.id + 7 WHEN MATCHED AND price > 3 THEN DELETE WHEN NOT MATCHED AND s.id > 0 THEN INSERT (id, isbn) VALUES (1, 'i9')", Args: []any{1}}, new: true},
	{Write: harness.Write{Name: "write in WITH", Query: "WITH w AS (UPDATE books SET price = 2000 WHERE id = $1 RETURNING id) SELECT count(*) FROM w", Args: []any{1}}},
}

// g12Tables are created in each database. Triggers refuse the price 666.
var g12Tables = []string{
	"CREATE TABLE writers (id integer PRIMARY KEY)",
	`CREATE TABLE books (id integer PRIMARY KEY, isbn varchar(10) UNIQUE CHECK (length(isbn) <= 10), price integer NOT NULL DEFAULT 10 CHECK (price < 1000),
		writer integer, fence_token bigint, FOREIGN KEY (writer) REFERENCES writers (id))`,
	"CREATE TABLE pages (book integer NOT NULL, FOREIGN KEY (book) REFERENCES books (id))",
}

var g12Triggers = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {
		"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no 666''; END'",
		"CREATE TRIGGER t AFTER INSERT OR UPDATE ON books FOR EACH ROW WHEN (NEW.price = 666) EXECUTE FUNCTION refuse()",
	},
	sqlfence.SQLite: {
		"CREATE TRIGGER t AFTER UPDATE ON books WHEN NEW.price = 666 BEGIN SELECT RAISE(ABORT, 'no 666'); END",
		"CREATE TRIGGER i AFTER INSERT ON books WHEN NEW.price = 666 BEGIN SELECT RAISE(ABORT, 'no 666'); END",
	},
	sqlfence.MySQL: {
		"CREATE TRIGGER t AFTER UPDATE ON books FOR EACH ROW IF NEW.price = 666 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no 666'; END IF",
		"CREATE TRIGGER i AFTER INSERT ON books FOR EACH ROW IF NEW.price = 666 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no 666'; END IF",
	},
}

// A stale holder's write is stale, whatever other error the write has. The current holder's write has the same error as
// without sqlfence.
func TestG12StaleFirst(t *testing.T) {
	ledger, fence := sqlfence.Ledger(), sqlfence.RowFence("fence_token")
	rulesets := []struct {
		name        string
		rules       []sqlfence.Rule
		row, ledger bool
	}{
		{"ledger", []sqlfence.Rule{ledger}, false, true},
		{"both", []sqlfence.Rule{ledger, fence}, true, true},
		{"row fence", []sqlfence.Rule{fence}, true, false},
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		for _, create := range append(append(append([]string(nil), g12Tables...), g12Triggers[b.Dialect]...),
			"CREATE TABLE fencing_tokens (name "+b.LedgerName()+" NOT NULL PRIMARY KEY, token bigint NOT NULL)",
			"INSERT INTO fencing_tokens VALUES ('books', 9)",
			"INSERT INTO writers VALUES (1)",
			"INSERT INTO books (id, isbn, writer, fence_token) VALUES (1, 'i1', 1, 9), (2, 'i2', 1, 9)",
			"INSERT INTO pages VALUES (1)") {
			harness.MustExec(t, plain, create)
		}
		if b.AsksByFunction() {
			harness.MustExec(t, plain, tokens.LedgerFunction())
		}
		storesFirst := b.Dialect == sqlfence.MySQL && !(&harness.Shop{Plain: plain}).IsMariaDB(t)
		for _, r := range rulesets {
			db := b.Fenced(t, dsn, harness.Books(r.rules...))
			for _, w := range wrongs {
				w.Write = w.As(b.Dialect)
				if !isWrong(t, plain, w) {
					continue // this database accepts it, or doesn't have the statement
				}
				for form, send := range g12Forms {
					raw, rawErr := send(t.Context(), plain, w.Write)
					n, err := send(harness.Holding(t, 9), db, w.Write)
					if errors.Is(err, sqlfence.ErrUnguardable) {
						continue
					}
					if n != raw || errorText(err) != errorText(rawErr) {
						t.Errorf("%s, %s, %s: %d rows, %v; without sqlfence %d, %v", r.name, w.Name, form, n, err, raw, rawErr)
					}
					_, err = send(harness.Holding(t, 8), db, w.Write)
					first := r.ledger || !w.new && !w.none && !w.ill
					if b.Dialect == sqlfence.SQLite && (w.seeks || w.deletes && r.row) {
						first = false
					}
					if storesFirst && w.stores && r.row {
						continue // either error may come first
					}
					if b.Dialect == sqlfence.Postgres {
						alone, prepares := form == "exec" || form == "prepared", form != "exec" && len(w.Args) == 1 && w.plans
						switch {
						case !r.ledger:
							first = first && !w.fails && !w.plans
						case !alone:
							first = !w.plans && (r.row || !w.late)
						case prepares:
							first = false
						}
					}
					switch {
					case first && !errors.Is(err, sqlfence.ErrStale):
						t.Errorf("%s, %s, %s: %v, want ErrStale", r.name, w.Name, form, err)
					case first && harness.SQLState(err) != "" && harness.SQLState(err) != "22P02":
						t.Errorf("%s, %s, %s: the error of the statement is in %v", r.name, w.Name, form, err)
					case !first && !errors.Is(err, sqlfence.ErrStale) && errorText(err) != errorText(rawErr):
						t.Errorf("%s, %s, %s: %v, want %v", r.name, w.Name, form, err, rawErr)
					case !first && errors.Is(err, sqlfence.ErrStale):
						t.Errorf("%s, %s, %s: stale, which the documentation says it isn't", r.name, w.Name, form)
					}
				}
			}
		}
	})
}

// errorText is [harness.ErrorText] without the row's number, because MariaDB also counts the guard's rows.
func errorText(err error) string { return atRow.ReplaceAllString(harness.ErrorText(err), "") }

var atRow = regexp.MustCompile(` at row \d+`)

// isWrong reports whether the database refuses a write for its content, or, if w.none is set, whether no row matches.
func isWrong(t *testing.T, db *sql.DB, w wrong) bool {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	n, err := harness.Affected(tx.Exec(w.Query, w.Args...))
	if w.none {
		return err == nil && n == 0
	}
	return err != nil && !strings.Contains(err.Error(), ": syntax error") && !strings.Contains(err.Error(), "in your SQL syntax")
}

// g12Forms send a write by itself and in a transaction. The transaction is rolled back if the write fails.
var g12Forms = map[string]func(ctx context.Context, db *sql.DB, w harness.Write) (int64, error){
	"exec": func(ctx context.Context, db *sql.DB, w harness.Write) (int64, error) {
		return harness.Affected(db.ExecContext(ctx, w.Query, w.Args...))
	},
	"prepared": func(ctx context.Context, db *sql.DB, w harness.Write) (int64, error) {
		return harness.Prepared(ctx, db, w.Query, func(s *sql.Stmt) (int64, error) { return harness.Affected(s.ExecContext(ctx, w.Args...)) })
	},
	"in a transaction": func(ctx context.Context, db *sql.DB, w harness.Write) (n int64, err error) {
		return inTx(ctx, db, func(tx *sql.Tx) (int64, error) { return harness.Affected(tx.ExecContext(ctx, w.Query, w.Args...)) })
	},
	"prepared in a transaction": func(ctx context.Context, db *sql.DB, w harness.Write) (n int64, err error) {
		return inTx(ctx, db, func(tx *sql.Tx) (int64, error) {
			return harness.Prepared(ctx, tx, w.Query, func(s *sql.Stmt) (int64, error) { return harness.Affected(s.ExecContext(ctx, w.Args...)) })
		})
	},
}

func inTx(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) (int64, error)) (int64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	n, err := do(tx)
	if err != nil {
		return n, err
	}
	return n, tx.Commit()
}
