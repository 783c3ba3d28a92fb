package parsers

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"

	"github.com/sqlfence/sqlfence/internal/dialect"
)

// sqlite finds the writes of a statement with SQLite's authorizer, and its tree with a parser of SQLite's grammar. A
// sqlite isn't safe for concurrent use.
type sqlite struct {
	conn   *sqlite3.SQLiteConn
	noted  writes
	parser parser.Options
}

// reading is a tree of sqlite: the statements, and the writes that SQLite reports.
type reading struct {
	stmts  []ast.Stmt
	writes writes
}

const sqliteSchema = `
CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT, price, n, shelf TEXT, doc, "order", fence_token INTEGER, serial_no INTEGER, locked_by, locked_since, locked_expiry);
CREATE TABLE orders (id INTEGER PRIMARY KEY, title TEXT, price, n, shelf TEXT, doc, "order", fence_token INTEGER, serial_no INTEGER, locked_by, locked_since, locked_expiry);
CREATE TABLE other (id INTEGER PRIMARY KEY, title TEXT, price, n, shelf TEXT, doc, "order");
CREATE TABLE src (s_id INTEGER PRIMARY KEY, s_title TEXT, s_price, end, conflict, offset, key, window, "from", "where");
CREATE TABLE fencing_tokens (name TEXT PRIMARY KEY, token INTEGER);
CREATE TABLE ids (s);
CREATE INDEX books_title ON books (title);
CREATE INDEX orders_title ON orders (title);
CREATE UNIQUE INDEX books_shelf ON books (shelf) WHERE n > 1;
CREATE VIEW v AS SELECT * FROM src;`

func newSQLite(t testing.TB) *sqlite {
	conn, err := new(sqlite3.SQLiteDriver).Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	db := &sqlite{conn: conn.(*sqlite3.SQLiteConn), parser: parser.Options{UpdateDeleteLimit: true}}
	if _, err := db.conn.Exec(sqliteSchema, []driver.Value{}); err != nil {
		t.Fatal(err)
	}
	db.conn.RegisterAuthorizer(db.note)
	return db
}

func (*sqlite) dialect() dialect.Dialect { return dialect.SQLite }

// note is SQLite's authorizer callback. It records writes and permits everything.
func (db *sqlite) note(op int, a, b, schema string) int {
	w := &db.noted
	lower := strings.ToLower
	switch op {
	case sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE:
		// SQLite reports an UPDATE once for each column, and an upsert as INSERT and UPDATE. The first report is
		// enough, because a statement of SQLite has one target.
		if w.all++; len(w.rows) == 0 {
			w.row(lower(a))
		}
	case sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_DROP_TEMP_TABLE:
		w.whole(lower(a))
	case sqlite3.SQLITE_ALTER_TABLE:
		w.whole(lower(b))
	}
	return sqlite3.SQLITE_OK
}

func (db *sqlite) parse(text string) (any, error) {
	stmts, err := db.parser.ParseString(text)
	if err != nil {
		return nil, err
	}
	if len(stmts) == 0 {
		return nil, errors.New("empty")
	}
	var all writes
	for _, s := range stmts {
		if _, ok := s.(*ast.PragmaStmt); ok {
			continue // preparing some pragmas executes them
		}
		db.noted = writes{}
		prepared, err := db.conn.Prepare(withoutLimit(s, text[s.Pos():s.End()]))
		if err != nil {
			return nil, err
		}
		prepared.Close()
		if strings.HasPrefix(fmt.Sprintf("%T", s), "*ast.Explain") {
			continue // never executes its statement
		}
		all.rows = append(all.rows, db.noted.rows...)
		all.tables = append(all.tables, db.noted.tables...)
	}
	if len(all.tables) > 0 {
		all.rows = nil // SQLite also reports a DROP as DELETE
	}
	return &reading{stmts, all}, nil
}

// withoutLimit removes ORDER BY and LIMIT from an UPDATE or DELETE, because this build of SQLite, like most, can't
// prepare them.
func withoutLimit(s ast.Stmt, text string) string {
	switch s := s.(type) {
	case *ast.UpdateStmt:
		if c := *s; c.Limit != nil || c.OrderBy != nil {
			c.Limit, c.OrderBy = nil, nil
			return ast.String(&c)
		}
	case *ast.DeleteStmt:
		if c := *s; c.Limit != nil || c.OrderBy != nil {
			c.Limit, c.OrderBy = nil, nil
			return ast.String(&c)
		}
	}
	return text
}

func (*sqlite) writes(tree any) writes { return tree.(*reading).writes }

func (*sqlite) difference(a, b any) string {
	x, y := a.(*reading), b.(*reading)
	if !reflect.DeepEqual(x.writes.rows, y.writes.rows) {
		return fmt.Sprintf("SQLite says it writes %v, guarded %v", x.writes.rows, y.writes.rows)
	}
	for i := range min(len(x.stmts), len(y.stmts)) {
		sayAbort(x.stmts[i], y.stmts[i])
	}
	before, after := dump(x.stmts), dump(y.stmts)
	if before == after {
		return ""
	}
	i := 0
	for i < len(before) && i < len(after) && before[i] == after[i] {
		i++
	}
	i = max(0, i-40)
	return fmt.Sprintf("%.120q, %.120q", before[i:], after[i:])
}

// sayAbort adds OR ABORT, the default, to the user's statement if the guard has added it.
func sayAbort(before, after ast.Stmt) {
	switch b := before.(type) {
	case *ast.UpdateStmt:
		if a, ok := after.(*ast.UpdateStmt); ok && b.OrConflict == ast.ConflictDefault && a.OrConflict == ast.ConflictAbort {
			b.OrConflict = a.OrConflict
		}
	case *ast.InsertStmt:
		if a, ok := after.(*ast.InsertStmt); ok && b.OrConflict == ast.ConflictDefault && a.OrConflict == ast.ConflictAbort {
			b.OrConflict = a.OrConflict
		}
	}
}

// dump formats a tree without positions and spellings.
func dump(n any) string {
	var b strings.Builder
	dumpValue(&b, reflect.ValueOf(n))
	return b.String()
}

func dumpValue(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			b.WriteString("-")
			return
		}
		if p, ok := v.Interface().(*ast.BindParam); ok && p.Kind <= ast.ParamNumber {
			fmt.Fprintf(b, "?%d", p.Number) // the guard numbers a bare placeholder that it repeats
			return
		}
		dumpValue(b, v.Elem())
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			dumpValue(b, v.Index(i))
			b.WriteByte(' ')
		}
		b.WriteByte(']')
	case reflect.Struct:
		b.WriteString(v.Type().Name() + "{")
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; name {
			case "Span", "Raw", "Quote":
			default:
				dumpValue(b, v.Field(i))
				b.WriteByte(' ')
			}
		}
		b.WriteByte('}')
	default:
		fmt.Fprint(b, v.Interface())
	}
}
