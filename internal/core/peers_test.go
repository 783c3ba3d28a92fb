package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// mysqlError has the form of go-sql-driver/mysql's errors.
type mysqlError struct {
	Number  uint16
	Message string
}

func (e *mysqlError) Error() string { return e.Message }

// A connection queries its server's facts once. It refuses a write that is compared with the ledger if other servers
// write to the database, and every write without a response.
func TestPeersAreAskedOnce(t *testing.T) {
	down := errors.New("no answer")
	for name, tt := range map[string]struct {
		rule    sqlfence.Rule
		dialect sqlfence.Dialect
		peers   [][]any
		err     error
		fenced  bool

		asked, written int
		want           error
	}{
		"none":              {rule: sqlfence.Ledger(), fenced: true, asked: 1, written: 3},
		"Galera":            {rule: sqlfence.Ledger(), fenced: true, peers: [][]any{{"wsrep_provider", "libgalera_smm.so"}}, asked: 1, want: sqlfence.ErrUnguardable},
		"no Galera":         {rule: sqlfence.Ledger(), fenced: true, peers: [][]any{{"wsrep_provider", "none"}}, asked: 1, written: 3},
		"several primaries": {rule: sqlfence.Ledger(), fenced: true, peers: [][]any{{"group_replication_single_primary_mode", "OFF"}}, asked: 1, want: sqlfence.ErrUnguardable},
		"one primary":       {rule: sqlfence.Ledger(), fenced: true, peers: [][]any{{"group_replication_single_primary_mode", "ON"}}, asked: 1, written: 3},
		"no answer":         {rule: sqlfence.Ledger(), fenced: true, err: down, asked: 3, want: down},
		"no token":          {rule: sqlfence.Ledger(), want: sqlfence.ErrNoFence},
		"in the row":        {rule: sqlfence.RowFence("fence_token"), fenced: true, peers: [][]any{{"wsrep_provider", "libgalera_smm.so"}}, asked: 1, written: 3},
		"another database":  {rule: sqlfence.Ledger(), dialect: sqlfence.SQLite, fenced: true, written: 3},
	} {
		t.Run(name, func(t *testing.T) {
			asked, written := 0, 0
			base := fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
				switch {
				case strings.HasPrefix(c.Query, "SHOW VARIABLES"):
					asked++
					return fakedb.Response{Rows: tt.peers}, tt.err
				case strings.HasPrefix(c.Query, "UPDATE"):
					written++
				}
				return fakedb.Response{Affected: 1}, nil
			})
			if tt.dialect == 0 {
				tt.dialect = sqlfence.MySQL
			}
			db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(tt.dialect), sqlfence.WithTable("books", tt.rule))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx := context.Background()
			if tt.fenced {
				ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: 5})
			}
			for range 3 {
				if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); !errors.Is(err, tt.want) {
					t.Errorf("error = %v, want %v", err, tt.want)
				}
			}
			if _, err := db.Exec("UPDATE others SET price = 1"); err != nil {
				t.Error(err)
			}
			if asked != tt.asked || written != tt.written+1 {
				t.Errorf("asked %d times and sent %d writes, want %d and %d", asked, written, tt.asked, tt.written+1)
			}
		})
	}
}

// A transaction that the server keeps open, because the server executes neither COMMIT nor ROLLBACK, isn't left to the
// pool's next user.
func TestKeptTransactionEndsWithItsSession(t *testing.T) {
	refuse := &mysqlError{1047, "WSREP has not yet prepared node for application use"}
	for name, end := range map[string]func(tx *sql.Tx) error{
		"commit":   (*sql.Tx).Commit,
		"rollback": (*sql.Tx).Rollback,
	} {
		for _, guarded := range []bool{false, true} {
			conns := map[int]bool{}
			base := fakedb.New(func(_ context.Context, c fakedb.Call) (fakedb.Response, error) {
				conns[c.Conn] = true
				if c.Kind == fakedb.Commit || c.Kind == fakedb.Rollback {
					return fakedb.Response{}, refuse
				}
				return fakedb.Response{}, nil
			})
			db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			for range 2 {
				tx, err := db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				text := "UPDATE others SET price = 1"
				if guarded {
					text = "UPDATE books SET price = 1"
				}
				ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
				if _, err := tx.ExecContext(ctx, text); err != nil {
					t.Fatal(err)
				}
				if err := end(tx); !errors.Is(err, refuse) || errors.Is(err, sqlfence.ErrUnknownOutcome) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if len(conns) != 2 {
				t.Errorf("%s, guarded %v: %d connections, want 2", name, guarded, len(conns))
			}
		}
	}
}

// noQueryer is a connection that prepares every query.
type noQueryer struct{ driver.Conn }

func (c noQueryer) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

// A connection without a query method gets the query for facts as a prepared statement.
func TestServersAreAskedPrepared(t *testing.T) {
	for _, down := range []error{nil, errors.New("no answer")} {
		base := &fakedb.Recorder{NoRow: true, Form: func(c *fakedb.RecorderConn) driver.Conn { return noQueryer{c} }, Fails: func(query string) error {
			if strings.HasPrefix(query, "SHOW VARIABLES") {
				return down
			}
			return nil
		}}
		db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(sqlfence.MySQL), sqlfence.WithTable("books", sqlfence.Ledger()))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books", Value: 5})
		if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); !errors.Is(err, down) {
			t.Errorf("%v, want %v", err, down)
		}
	}
}
