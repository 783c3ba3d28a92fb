package stmtcache_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// With this setting each write of a session returns a row, which the write's text doesn't show. If the cache ran a kept
// statement only to its first row, the statement would hold its transaction open.
const countChanges = "PRAGMA count_changes = 1"

// A settingConnector executes a statement on each new connection, as a driver's hook does.
type settingConnector struct {
	base    driver.Driver
	dsn     string
	setting string
}

func (c settingConnector) Driver() driver.Driver { return c.base }

func (c settingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.base.Open(c.dsn)
	if err != nil || c.setting == "" {
		return conn, err
	}
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, c.setting, nil)
	return conn, err
}

func TestWritesThatReturnTheirCount(t *testing.T) {
	exec := func(query string) func(context.Context, *sql.Conn) error {
		return func(ctx context.Context, c *sql.Conn) error {
			_, err := c.ExecContext(ctx, query)
			return err
		}
	}
	prepare := func(query string) func(context.Context, *sql.Conn) error {
		return func(ctx context.Context, c *sql.Conn) error {
			stmt, err := c.PrepareContext(ctx, query)
			if err != nil {
				return err
			}
			return stmt.Close()
		}
	}
	query := func(query string) func(context.Context, *sql.Conn) error {
		return func(ctx context.Context, c *sql.Conn) error {
			rows, err := c.QueryContext(ctx, query)
			if err != nil {
				return err
			}
			return rows.Close()
		}
	}
	ways := []struct {
		name      string
		connected string
		set       func(context.Context, *sql.Conn) error
	}{
		{"when it was connected", countChanges, nil},
		{"executed", "", exec(countChanges)},
		{"executed behind another", "", exec("SELECT 1; " + countChanges)},
		{"queried", "", query(countChanges)},
		{"prepared", "", prepare(countChanges)}, // SQLite applies it when the statement is prepared
		{"explained", "", query("EXPLAIN " + countChanges)},
		{"raw", "", func(ctx context.Context, c *sql.Conn) error {
			return c.Raw(func(c any) error {
				_, err := sqlfence.BaseConn(c).(driver.ExecerContext).ExecContext(ctx, countChanges, nil)
				return err
			})
		}},
	}
	eachSQLite(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b)
		other := s.Raw(t, harness.Impatient(s.Source))
		for _, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				s.Reset(t, 5)
				db, err := sqlfence.OpenDB(settingConnector{s.Plain.Driver(), s.Source, way.connected},
					harness.Books(sqlfence.RowFence("fence_token")), sqlfence.WithStatementCache(8))
				harness.CloseAtEnd(t, db, err)
				ctx := harness.Holding(t, 5)
				c, err := db.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				price := 40
				write := func() {
					t.Helper()
					price++
					if _, err := c.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", price, 1); err != nil {
						t.Fatal(err)
					}
					var found int
					if err := other.QueryRow("SELECT price FROM books WHERE id = 1").Scan(&found); err != nil || found != price {
						t.Errorf("another connection finds %d, %v; want %d", found, err, price)
					}
					if _, err := other.Exec("UPDATE books SET writer = 1 WHERE id = 2"); err != nil {
						t.Errorf("another connection's write: %v", err)
					}
				}
				write()
				if way.set != nil {
					if err := way.set(ctx, c); err != nil {
						t.Fatal(err)
					}
				}
				for range 3 {
					write()
				}
				// After a change of the schema SQLite prepares kept statements again.
				if _, err := other.Exec("CREATE TABLE " + strings.ReplaceAll(way.name, " ", "_") + " (id integer)"); err != nil {
					t.Fatal(err)
				}
				write()
				write()
				var set int
				if err := c.QueryRowContext(ctx, "PRAGMA count_changes").Scan(&set); err != nil || set != 1 {
					t.Errorf("count_changes = %d, %v", set, err)
				}
			})
		}
	})
}
