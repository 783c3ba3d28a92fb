package fencepgx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A door is a method that sends a text to the server.
type door struct {
	of   string // the type with the method
	name string // of the method
	send func(ctx context.Context, db *fencepgx.DB, text string) error
}

func scan(row interface{ Scan(...any) error }) error {
	var n int
	return row.Scan(&n)
}

func queue(text string) *pgx.Batch {
	b := new(pgx.Batch)
	b.Queue("SELECT 1")
	b.Queue(text)
	return b
}

func readAll(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return rows.Err()
}

// doors are all methods that send a text: of a DB, its connections and transactions, and of their counterparts for
// database/sql.
var doors = slices.Concat(
	poolDoors("*fencepgx.DB", func(_ context.Context, db *fencepgx.DB, do func(pool) error) error { return do(db) }),
	poolDoors("*fencepgx.Conn", func(ctx context.Context, db *fencepgx.DB, do func(pool) error) error {
		return db.AcquireFunc(ctx, func(c *fencepgx.Conn) error { return do(c) })
	}),
	poolDoors("pgx.Tx", func(ctx context.Context, db *fencepgx.DB, do func(pool) error) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return do(tx) })
	}),
	poolDoors("pgx.Tx", func(ctx context.Context, db *fencepgx.DB, do func(pool) error) error {
		b := new(pgx.Batch)
		b.BeginTx(pgx.TxOptions{})
		b.Queue("SELECT 1")
		results := db.SendBatch(ctx, b)
		err := results.Close()
		if tx := results.Tx(); tx != nil {
			err = errors.Join(err, do(tx), tx.Commit(ctx))
		}
		return err
	}),
	[]door{
		{"*fencepgx.DB", "BeginTx", func(ctx context.Context, db *fencepgx.DB, text string) error {
			return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{BeginQuery: "BEGIN; " + text}, func(pgx.Tx) error { return nil })
		}},
		{"*fencepgx.DB", "BeginTx", func(ctx context.Context, db *fencepgx.DB, text string) error {
			return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{CommitQuery: text + "; COMMIT"}, func(pgx.Tx) error { return nil })
		}},
		{"*fencepgx.Conn", "BeginTx", func(ctx context.Context, db *fencepgx.DB, text string) error {
			return db.AcquireFunc(ctx, func(c *fencepgx.Conn) error {
				return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{BeginQuery: text}, func(pgx.Tx) error { return nil })
			})
		}},
		{"*fencepgx.DB", "SendBatch", func(ctx context.Context, db *fencepgx.DB, text string) error {
			b := new(pgx.Batch)
			b.BeginTx(pgx.TxOptions{CommitQuery: text})
			b.Queue("SELECT 1")
			results := db.SendBatch(ctx, b)
			err := results.Close()
			if tx := results.Tx(); tx != nil {
				err = errors.Join(err, tx.Commit(ctx))
			}
			return err
		}},
	},
	sqlDoors("*sql.DB", func(_ context.Context, db *sql.DB, do func(sqlPool) error) error { return do(db) }),
	sqlDoors("*sql.Conn", func(ctx context.Context, db *sql.DB, do func(sqlPool) error) error {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return do(c)
	}),
	sqlDoors("*sql.Tx", func(ctx context.Context, db *sql.DB, do func(sqlPool) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return errors.Join(do(tx), tx.Commit())
	}),
)

// pool has the common methods of a DB, its connections and its transactions.
type pool interface {
	querier
	Begin(context.Context) (pgx.Tx, error)
}

func poolDoors(of string, with func(context.Context, *fencepgx.DB, func(pool) error) error) []door {
	on := func(name string, send func(ctx context.Context, p pool, text string) error) door {
		return door{of, name, func(ctx context.Context, db *fencepgx.DB, text string) error {
			return with(ctx, db, func(p pool) error { return send(ctx, p, text) })
		}}
	}
	all := []door{
		on("Exec", func(ctx context.Context, p pool, text string) error { _, err := p.Exec(ctx, text); return err }),
		on("Exec", func(ctx context.Context, p pool, text string) error {
			_, err := p.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
			return err
		}),
		on("Exec", func(ctx context.Context, p pool, text string) error {
			_, err := p.Exec(ctx, "SELECT 1", rewriteTo{text, nil})
			return err
		}),
		on("Query", func(ctx context.Context, p pool, text string) error { return readAll(p.Query(ctx, text)) }),
		on("Query", func(ctx context.Context, p pool, text string) error {
			return readAll(p.Query(ctx, text, pgx.QueryExecModeSimpleProtocol))
		}),
		on("QueryRow", func(ctx context.Context, p pool, text string) error { return scan(p.QueryRow(ctx, text)) }),
		on("SendBatch", func(ctx context.Context, p pool, text string) error { return p.SendBatch(ctx, queue(text)).Close() }),
		on("SendBatch", func(ctx context.Context, p pool, text string) error {
			results := p.SendBatch(ctx, queue(text))
			_, err := results.Exec()
			return errors.Join(err, readAll(results.Query()), results.Close())
		}),
		on("Begin", func(ctx context.Context, p pool, text string) error {
			return pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, text); return err })
		}),
	}
	if of == "*fencepgx.DB" {
		return all
	}
	type preparer interface {
		Prepare(context.Context, string, string) (*pgconn.StatementDescription, error)
	}
	return append(all, on("Prepare", func(ctx context.Context, p pool, text string) error {
		if _, err := p.(preparer).Prepare(ctx, "by another name", text); err != nil {
			return err
		}
		_, err := p.Exec(ctx, "by another name")
		return err
	}))
}

// sqlPool has the methods that *sql.DB, *sql.Conn and *sql.Tx share.
type sqlPool interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}

func sqlDoors(of string, with func(context.Context, *sql.DB, func(sqlPool) error) error) []door {
	on := func(name string, send func(ctx context.Context, p sqlPool, text string) error) door {
		return door{of, name, func(ctx context.Context, db *fencepgx.DB, text string) error {
			return with(ctx, db.SQL(), func(p sqlPool) error { return send(ctx, p, text) })
		}}
	}
	return []door{
		on("ExecContext", func(ctx context.Context, p sqlPool, text string) error {
			_, err := p.ExecContext(ctx, text)
			return err
		}),
		on("ExecContext", func(ctx context.Context, p sqlPool, text string) error {
			_, err := p.ExecContext(ctx, text, pgx.QueryExecModeSimpleProtocol)
			return err
		}),
		on("ExecContext", func(ctx context.Context, p sqlPool, text string) error {
			_, err := p.ExecContext(ctx, "SELECT 1", rewriteTo{text, nil})
			return err
		}),
		on("QueryContext", func(ctx context.Context, p sqlPool, text string) error {
			rows, err := p.QueryContext(ctx, text)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		}),
		on("QueryRowContext", func(ctx context.Context, p sqlPool, text string) error { return scan(p.QueryRowContext(ctx, text)) }),
		on("PrepareContext", func(ctx context.Context, p sqlPool, text string) error {
			stmt, err := p.PrepareContext(ctx, text)
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx)
			return err
		}),
		on("PrepareContext", func(ctx context.Context, p sqlPool, text string) error {
			stmt, err := p.PrepareContext(ctx, text)
			if err != nil {
				return err
			}
			defer stmt.Close()
			rows, err := stmt.QueryContext(ctx)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		}),
	}
}

// closedDoors are the other methods, each with the reason why it sends no text that could be a write.
var closedDoors = map[string]map[string]string{
	"*fencepgx.DB": {
		"SQL": "the doors of *sql.DB", "Acquire": "the doors of *fencepgx.Conn", "AcquireFunc": "the doors of *fencepgx.Conn",
		"CopyFrom": "it quotes its names, and TestCopy has it", "Ping": "no text", "Close": "no text", "Reset": "no text",
		"Config": "a copy; a pool of its own isn't fenced", "Stat": "no text",
	},
	"*fencepgx.Conn": {
		"CopyFrom": "as DB", "Deallocate": "it quotes its name", "Ping": "no text", "Release": "no text",
		"WaitForNotification": "no text", "Conn": "pgx's own connection, with an event",
	},
	"pgx.Tx": {
		"Commit": "the text of the options", "Rollback": "no text", "CopyFrom": "as DB", "LargeObjects": "fixed texts",
		"Conn": "pgx's own connection, with an event",
	},
	"*sql.DB": {
		"Begin": "the doors of *sql.Tx", "BeginTx": "the doors of *sql.Tx", "Conn": "the doors of *sql.Conn",
		"Exec": "ExecContext", "Query": "QueryContext", "QueryRow": "QueryRowContext", "Prepare": "PrepareContext",
		"Driver": "it opens fenced connections", "Close": "no text", "Ping": "no text", "PingContext": "no text",
		"Stats": "no text", "SetConnMaxIdleTime": "no text", "SetConnMaxLifetime": "no text", "SetMaxIdleConns": "no text",
		"SetMaxOpenConns": "no text",
	},
	"*sql.Conn": {
		"BeginTx": "the doors of *sql.Tx", "Raw": "the driver's own connection, with an event", "Close": "no text",
		"PingContext": "no text",
	},
	"*sql.Tx": {
		"Commit": "no text", "Rollback": "no text", "Exec": "ExecContext", "Query": "QueryContext",
		"QueryRow": "QueryRowContext", "Prepare": "PrepareContext", "Stmt": "StmtContext",
		"StmtContext": "a statement of PrepareContext",
	},
}

// Each method is in doors or in closedDoors.
func TestEachMethodThatSendsTextIsTried(t *testing.T) {
	for name, typ := range map[string]reflect.Type{
		"*fencepgx.DB": reflect.TypeFor[*fencepgx.DB](), "*fencepgx.Conn": reflect.TypeFor[*fencepgx.Conn](),
		"pgx.Tx": reflect.TypeFor[pgx.Tx](), "*sql.DB": reflect.TypeFor[*sql.DB](),
		"*sql.Conn": reflect.TypeFor[*sql.Conn](), "*sql.Tx": reflect.TypeFor[*sql.Tx](),
	} {
		for i := range typ.NumMethod() {
			method := typ.Method(i).Name
			tried := slices.ContainsFunc(doors, func(d door) bool { return d.of == name && d.name == method })
			if _, closed := closedDoors[name][method]; tried == closed {
				t.Errorf("%s.%s: in the list of doors %v, in that of closed ones %v", name, method, tried, closed)
			}
		}
	}
}

// preparations are the ways to have a statement prepared on a pool's connection without a guard.
var preparations = map[string]func(ctx context.Context, c *pgx.Conn, name, text string) error{
	"pgx": func(ctx context.Context, c *pgx.Conn, name, text string) error {
		_, err := c.Prepare(ctx, name, text)
		return err
	},
	"the protocol": func(ctx context.Context, c *pgx.Conn, name, text string) error {
		_, err := c.PgConn().Prepare(ctx, name, text, nil)
		return err
	},
	"SQL": func(ctx context.Context, c *pgx.Conn, name, text string) error {
		_, err := c.Exec(ctx, "PREPARE "+pgx.Identifier{name}.Sanitize()+" AS "+text)
		return err
	},
}

// executing returns texts that run a prepared statement by its name.
func executing(name string) []string {
	quoted := pgx.Identifier{name}.Sanitize()
	escaped := `U&"`
	for _, c := range name {
		escaped += fmt.Sprintf(`\%04x`, c)
	}
	all := []string{
		"EXECUTE " + quoted, "execute/* */" + quoted, "EXPLAIN (ANALYZE) EXECUTE" + quoted, "SELECT 1; EXECUTE " + quoted,
		"EXECUTE " + escaped + `"`, name,
	}
	if name == strings.ToLower(name) && !strings.ContainsAny(name, ` "`) {
		all = append(all, "EXECUTE "+name, "EXECUTE\n"+strings.ToUpper(name))
	}
	return all
}

// A hook of the pool, or another user of it, has prepared a write on one of the pool's connections. No door runs this
// write without its guard.
func TestPreparedStatementsOfOthersRunThroughNoDoorUnguarded(t *testing.T) {
	const write = "UPDATE books SET price = 30 WHERE id = 1 RETURNING id"
	names := []string{"set_price", "Set price", `a"b`, "é", strings.Repeat("long", 15) + "xyz"}
	onFences(t, func(t *testing.T, s *shop) {
		for by, prepare := range preparations {
			hook := func(ctx context.Context, c *pgx.Conn) error {
				for _, name := range names {
					if err := prepare(ctx, c, name, write); err != nil {
						return err
					}
				}
				return nil
			}
			pool, db := s.both(t, func(c *pgxpool.Config) { c.MaxConns, c.AfterConnect = 1, hook }, harness.Books(s.rule))
			other := s.open(t, func(c *pgxpool.Config) { c.MaxConns, c.AfterConnect = 1, hook }, sqlfence.WithTable("pens"))
			s.Reset(t, 9)
			unchanged := s.Unchanged(t)
			for i, name := range names {
				for _, text := range executing(name) {
					for _, d := range doors {
						if i > 0 && !strings.HasPrefix(d.name, "Exec") || testing.Short() && strings.HasPrefix(text, "SELECT 1;") {
							continue // this door doesn't run such names
						}
						for _, ctx := range []context.Context{t.Context(), harness.Holding(t, 8)} {
							if err := d.send(ctx, db, text); err == nil {
								t.Errorf("%s by %s.%s, prepared by %s: no error", text, d.of, d.name, by)
							}
						}
					}
				}
			}
			unchanged()
			// Without a guard each of the texts writes.
			for _, text := range executing(names[0]) {
				if text == names[0] && by != "pgx" {
					continue // only pgx's own Prepare registers this name
				}
				if _, err := pool.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Errorf("%s on the pool: %v", text, err)
				}
				if got := s.State(t, false); !strings.HasPrefix(got, "1:30") {
					t.Errorf("%s on the pool left %s", text, got)
				}
				s.Reset(t, 9)
			}
			// If the table isn't registered, the prepared write runs through the doors.
			for _, send := range []func(string) error{
				func(text string) error { _, err := other.Exec(t.Context(), text); return err },
				func(text string) error { _, err := other.SQL().ExecContext(t.Context(), text); return err },
			} {
				if err := send(`EXECUTE "set_price"`); err != nil {
					t.Error(err)
				}
			}
			s.Reset(t, 9)
		}
	})
}
