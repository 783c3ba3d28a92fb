package setup_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/changes"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// An ender ends a context before or after one of the statements that are sent.
type ender struct {
	driver.Connector
	end   context.CancelFunc
	at    int  // the number of the statement
	after bool // the context ends after this statement, not before it
	sent  int
}

func (e *ender) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := e.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := endingConn{base.(baseConn), e}
	if validator, ok := base.(driver.Validator); ok {
		return struct {
			endingConn
			driver.Validator
		}{c, validator}, nil
	}
	return c, nil
}

func (e *ender) around(send func() error) error {
	e.sent++
	here := e.end != nil && e.sent == e.at
	if here && !e.after {
		e.end()
	}
	err := send()
	if here && e.after {
		e.end()
	}
	return err
}

type baseConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Pinger
}

type endingConn struct {
	baseConn
	e *ender
}

// Raw lets sqlfence recognize the driver beneath.
func (c endingConn) Raw() driver.Conn { return c.baseConn }

func (c endingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.e.around(func() error { r, err = c.baseConn.ExecContext(ctx, query, args); return err })
	return r, err
}

func (c endingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.e.around(func() error { r, err = c.baseConn.QueryContext(ctx, query, args); return err })
	return r, err
}

func (c endingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	err = c.e.around(func() error { tx, err = c.baseConn.BeginTx(ctx, opts); return err })
	return tx, err
}

// sessionSettings are queries for all settings of a session, except settings whose values change without a SET.
var sessionSettings = map[sqlfence.Dialect]string{
	sqlfence.Postgres: "SELECT name, setting FROM pg_settings WHERE name NOT LIKE 'plpgsql.%'", // which are loaded when needed
	sqlfence.MySQL: "SELECT variable_name, variable_value FROM information_schema.session_variables WHERE variable_name NOT IN " +
		"('TIMESTAMP', 'LAST_INSERT_ID', 'IDENTITY', 'PSEUDO_THREAD_ID', 'RAND_SEED1', 'RAND_SEED2', 'WARNING_COUNT', " +
		"'ERROR_COUNT', 'LAST_GTID', 'GTID_BINLOG_POS', 'GTID_CURRENT_POS', 'GTID_BINLOG_STATE', 'INNODB_BUFFER_POOL_DUMP_NOW')",
}

func settingsOf(t *testing.T, b harness.Base, q harness.Reader) map[string]string {
	t.Helper()
	rows, err := q.QueryContext(context.WithoutCancel(t.Context()), sessionSettings[b.Dialect])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := make(map[string]string)
	for rows.Next() {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		found[name] = value.String
	}
	return found
}

// If the context of a function ends, at whatever moment, no connection goes back to the pool with changed settings.
func TestNoSettingIsLeftBehindWhereAContextEnds(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 3
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Name != "pgx" && b.Name != "mysql" {
			t.Skip("another driver for the same database, or one without sessions")
		}
		dsn := b.DSN(t)
		plain := b.Raw(t, dsn)
		direct, err := sql.Open(b.DriverName, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer direct.Close()
		base, err := direct.Driver().(driver.DriverContext).OpenConnector(dsn)
		if err != nil {
			t.Fatal(err)
		}
		reset := func() {
			for _, text := range []string{
				"DROP TABLE IF EXISTS books", "DROP TABLE IF EXISTS fencing_tokens", "DROP TABLE IF EXISTS fencing_leases",
				"DROP TABLE IF EXISTS rowlocks", "DROP TABLE IF EXISTS table_changes",
				"CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL DEFAULT 0)",
			} {
				if _, err := plain.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, call := range []struct {
			name string
			do   func(ctx context.Context, db *sql.DB) error
		}{
			{"schema.AddFence", func(ctx context.Context, db *sql.DB) error { return schema.AddFence(ctx, db, "books", "another") }},
			{"schema.Seal", func(ctx context.Context, db *sql.DB) error { return schema.Seal(ctx, db) }},
			{"schema.Unseal", func(ctx context.Context, db *sql.DB) error { return schema.Unseal(ctx, db, "books") }},
			{"tokens.Store.Setup", func(ctx context.Context, db *sql.DB) error {
				store, err := tokens.New(db)
				if err != nil {
					return err
				}
				return store.Setup(ctx)
			}},
			{"tokens.Store.RecordIssuers", func(ctx context.Context, db *sql.DB) error {
				store, err := tokens.New(db)
				if err != nil {
					return err
				}
				if err := store.Setup(ctx); err != nil {
					return err
				}
				return store.RecordIssuers(ctx)
			}},
			{"lease.Leases.Setup", func(ctx context.Context, db *sql.DB) error {
				leases, err := lease.New(db)
				if err != nil {
					return err
				}
				return leases.Setup(ctx)
			}},
			{"rowlock.Manager.Setup", func(ctx context.Context, db *sql.DB) error {
				manager, err := rowlock.NewManager(db)
				if err != nil {
					return err
				}
				return manager.Setup(ctx)
			}},
			{"changes.Counter.Setup", func(ctx context.Context, db *sql.DB) error {
				counter, err := changes.New(db)
				if err != nil {
					return err
				}
				return counter.Setup(ctx, "books")
			}},
		} {
			t.Run(call.name, func(t *testing.T) {
				for _, after := range []bool{false, true} {
					for at := 1; ; at += step {
						reset()
						e := &ender{Connector: base, at: at, after: after}
						db, err := sqlfence.OpenDB(e, sqlfence.WithDialect(b.Dialect),
							sqlfence.WithTable("books", sqlfence.RowFence("fence_token"), sqlfence.Sealed()))
						if err != nil {
							t.Fatal(err)
						}
						db.SetMaxOpenConns(2)
						db.SetMaxIdleConns(2)
						before := settingsOf(t, b, db)
						ctx, cancel := context.WithCancel(t.Context())
						e.sent, e.end = 0, cancel
						_ = call.do(ctx, db)
						reached := e.sent >= at
						e.end = nil
						cancel()
						var conns []*sql.Conn
						for i := range 2 {
							conn, err := db.Conn(t.Context())
							if err != nil {
								t.Fatal(err)
							}
							conns = append(conns, conn)
							if now := settingsOf(t, b, conn); !maps.Equal(now, before) {
								t.Errorf("the context ended at statement %d (after it: %v): connection %d has %v", at, after, i, differing(before, now))
							}
						}
						for _, conn := range conns {
							_ = conn.Close()
						}
						_ = db.Close()
						if !reached {
							break
						}
					}
				}
			})
		}
	})
}

func differing(before, now map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before[name] != now[name] {
			all = append(all, fmt.Sprintf("%s = %q, not %q", name, now[name], before[name]))
		}
	}
	return all
}
