package orm_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/extended/orm/sqlcstore"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// An ormBook is a record as an ORM returned it, without the fence column.
type ormBook struct {
	ID          int64
	ISBN, Title string
	Price       int64
	Deleted     bool
	Sequels     string
}

// An ormDB is a database with the facts that an ORM needs to open it.
type ormDB struct {
	*sql.DB
	harness.Base
	source string
}

// postgres and mysql report the dialect, for ORMs that must be configured for it.
func (db *ormDB) postgres() bool { return db.Dialect == sqlfence.Postgres }

func (db *ormDB) mysql() bool { return db.Dialect == sqlfence.MySQL }

// dialectName returns the name that matches the dialect.
func (db *ormDB) dialectName(postgres, sqlite, mysql string) string {
	return map[sqlfence.Dialect]string{sqlfence.Postgres: postgres, sqlfence.SQLite: sqlite, sqlfence.MySQL: mysql}[db.Dialect]
}

// An ormShop is a database with three books: i1, its sequel i2, and i3.
type ormShop struct {
	harness.Base
	source  string
	plain   *ormDB
	initial string // the rows after reset
}

// An ormOutcome is what an action returned, and the rows after the action.
type ormOutcome struct {
	returned any
	err      error
	rows     string            // without the fence column
	marks    map[string]string // the fence column's value of each row
}

func newORMShop(t *testing.T, b harness.Base) *ormShop {
	t.Helper()
	s := &ormShop{Base: b, source: ormSource(t, b)}
	schema, name := sqlcstore.Postgres, "text"
	switch b.Dialect {
	case sqlfence.SQLite:
		schema = sqlcstore.SQLite
	case sqlfence.MySQL:
		schema, name = sqlcstore.MySQL, "varbinary(512)"
	}
	s.plain = &ormDB{b.Raw(t, s.source), b, s.source}
	s.exec(t, schema)
	s.exec(t, "CREATE TABLE fencing_tokens (name "+name+" NOT NULL PRIMARY KEY, token bigint NOT NULL)")
	if b.AsksByFunction() {
		s.exec(t, tokens.LedgerFunction())
	}
	names := "('books', 0)"
	for _, key := range ormKeys {
		names += fmt.Sprintf(", ('books/%s', 0)", key)
	}
	s.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES "+names)
	s.reset(t, ormMark)
	s.initial, _ = s.books(t)
	return s
}

// ormSource returns the DSN of a fresh database, which doesn't wait for the disk. SQLite's foreign keys are on, because
// ent requires foreign keys.
func ormSource(t *testing.T, b harness.Base) string {
	t.Helper()
	source := b.DSN(t)
	switch b.Name {
	case "mattn":
		source += "&_synchronous=OFF&_foreign_keys=1"
	case "modernc":
		source += "&_pragma=synchronous(OFF)&_pragma=foreign_keys(1)"
	case "mysql", "mysql-interpolated":
		source = harness.MySQLWith(t, source, func(c *mysql.Config) { c.ParseTime = true })
	}
	return source
}

func (s *ormShop) fenced(t *testing.T, r ormRule) *ormDB {
	t.Helper()
	return &ormDB{s.Base.Fenced(t, s.source, harness.Books(r.rules...)), s.Base, s.source}
}

func (s *ormShop) exec(t testing.TB, query string) {
	t.Helper()
	switch _, err := s.plain.ExecContext(t.Context(), query); {
	case harness.IsKept(err):
		harness.Unkept(t, s.plain.DB, query)
	case err != nil:
		t.Fatalf("%s: %v", query, err)
	}
}

// reset restores the initial rows, with ormMark in their fence columns, and sets the ledger's tokens to ledger.
func (s *ormShop) reset(t testing.TB, ledger int64) {
	t.Helper()
	s.empty(t)
	reset := []string{
		fmt.Sprintf("UPDATE fencing_tokens SET token = %d", ledger),
		fmt.Sprintf(`INSERT INTO books (id, isbn, title, price, prequel_id, fence_token) VALUES
			(1, 'i1', 'one', 10, NULL, %d), (2, 'i2', 'two', 20, 1, %[1]d), (3, 'i3', 'three', 30, NULL, %[1]d)`, ormMark),
	}
	switch s.Dialect { // the next generated id must be 4; SQLite uses the highest id + 1
	case sqlfence.Postgres:
		reset = append(reset, "SELECT setval(pg_get_serial_sequence('books', 'id'), 3)")
	case sqlfence.MySQL:
		reset = append(reset, s.renumbering(t)...)
	}
	for _, query := range reset {
		s.exec(t, query)
	}
}

// empty deletes all books. It clears prequel_id first, because a book that is another's prequel can't be deleted.
func (s *ormShop) empty(t testing.TB) {
	t.Helper()
	s.exec(t, "UPDATE books SET prequel_id = NULL")
	s.exec(t, "DELETE FROM books")
}

// renumbering returns the statement that sets MySQL's next generated id to 4, or nothing if the next id is 4 already.
func (s *ormShop) renumbering(t testing.TB) []string {
	t.Helper()
	var name, created string
	if err := s.plain.QueryRowContext(t.Context(), "SHOW CREATE TABLE books").Scan(&name, &created); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(created, "AUTO_INCREMENT=4 ") {
		return nil
	}
	return []string{"ALTER TABLE books AUTO_INCREMENT = 4"}
}

// mariaDB reports whether the server is MariaDB rather than MySQL.
func (s *ormShop) mariaDB(t testing.TB) bool {
	t.Helper()
	var version string
	if err := s.plain.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(version, "MariaDB")
}

// do runs an action with tokens on the initial rows, after it has set the ledger's tokens to ledger.
func (s *ormShop) do(t *testing.T, action ormAction, ledger int64, tokens ...sqlfence.Token) ormOutcome {
	t.Helper()
	s.reset(t, ledger)
	return s.act(t, action, tokens)
}

// countsChanges reports whether the driver counts changed rows instead of matched rows. By default MySQL's driver does.
func (s *ormShop) countsChanges() bool { return s.Name == harness.MySQL.Name }

// again runs an action twice and returns the second outcome. Between the runs it sets the ledger's tokens to ledger;
// the second run presents the tokens in second.
func (s *ormShop) again(t *testing.T, action ormAction, ledger int64, first, second []sqlfence.Token) ormOutcome {
	t.Helper()
	s.do(t, action, ormMark, first...)
	s.exec(t, fmt.Sprintf("UPDATE fencing_tokens SET token = %d", ledger))
	return s.act(t, action, second)
}

// act runs an action on the rows as they are.
func (s *ormShop) act(t *testing.T, action ormAction, tokens []sqlfence.Token) ormOutcome {
	t.Helper()
	ctx := t.Context()
	if len(tokens) > 0 {
		ctx = sqlfence.WithFence(ctx, tokens...)
	}
	var got ormOutcome
	got.returned, got.err = action(ctx)
	got.rows, got.marks = s.books(t)
	return got
}

// books returns the rows without the fence column, and the fence column's value of each row.
func (s *ormShop) books(t testing.TB) (string, map[string]string) {
	t.Helper()
	rows, err := s.plain.QueryContext(t.Context(), `SELECT id, isbn, title, price, COALESCE(prequel_id, 0),
		deleted_at IS NOT NULL, COALESCE(fence_token, 0) FROM books ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all strings.Builder
	marks := make(map[string]string)
	for rows.Next() {
		var id, price, prequel, mark int64
		var isbn, title string
		var deleted bool
		if err := rows.Scan(&id, &isbn, &title, &price, &prequel, &deleted, &mark); err != nil {
			t.Fatal(err)
		}
		row := fmt.Sprintf("%d %s %s %d %d %t\n", id, isbn, title, price, prequel, deleted)
		all.WriteString(row)
		marks[row] = fmt.Sprint(mark)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String(), marks
}

// wantMarks fails the test unless each changed row holds the token, and each other row holds ormMark, or the token if
// it was written without a change.
func (s *ormShop) wantMarks(t *testing.T, got ormOutcome, token int64) {
	t.Helper()
	for row, mark := range got.marks {
		written := mark == fmt.Sprint(token)
		if !strings.Contains(s.initial, row) && !written {
			t.Errorf("token %d: a row that was written bears %s: %s", token, mark, row)
		} else if !written && mark != fmt.Sprint(ormMark) {
			t.Errorf("token %d: a row bears %s: %s", token, mark, row)
		}
	}
}

// errORMRollback is the error by which a transaction's function requests a rollback.
var errORMRollback = errors.New("the test rolls back")

// ormText has characters that could end a string literal or look like a placeholder.
const ormText = `a'b\'c"; -- ? $1 :x \`

var ormDeletedAt = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)

// ormCode returns the driver's code of a unique violation. The code shows that errors.As finds the driver's error in
// the ORM's error.
func ormCode(err error) string {
	var sqlite3Error sqlite3.Error
	var moderncError *sqlite.Error
	var mysqlError *mysql.MySQLError
	switch {
	case errors.As(err, &sqlite3Error):
		return fmt.Sprint("mattn ", int(sqlite3Error.ExtendedCode))
	case errors.As(err, &moderncError):
		return fmt.Sprint("modernc ", moderncError.Code())
	case errors.As(err, &mysqlError):
		return fmt.Sprint("mysql ", mysqlError.Number)
	}
	return harness.SQLState(err)
}
