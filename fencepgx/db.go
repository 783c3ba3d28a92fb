package fencepgx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/fenced"
)

// A DB is a pool that guards its statements. It is safe for concurrent use. The methods work as in pgxpool, with the
// guard.
type DB struct {
	pool     *pgxpool.Pool
	settings *core.Settings
	key      string // the key of a session in a connection's custom data
	found    core.Found
	sql      *sql.DB
	verified atomic.Bool
}

// opened counts the DBs, because one pool may have several.
var opened atomic.Int64

// New returns a DB on a pool. It sends nothing. A nil pool, invalid options, another dialect than PostgreSQL, and a
// version of pgx in which fencepgx can't find the prepared statements are [sqlfence.ErrInvalid]. The error lists all
// invalid options.
//
// The pool's hooks get unguarded connections. If a hook prepares a statement by name, the statement is guarded when a
// DB executes it.
func New(pool *pgxpool.Pool, opts ...sqlfence.Option) (*DB, error) {
	if pool == nil {
		return nil, fmt.Errorf("%w: nil pool", sqlfence.ErrInvalid)
	}
	if _, ok := basedriver.PreparedOn(new(pgx.Conn)); !ok {
		return nil, fmt.Errorf("%w: this version of pgx keeps prepared statements where fencepgx doesn't find them; "+
			"use the version of fencepgx's go.mod", sqlfence.ErrInvalid)
	}
	over, err := sqlfence.OpenDB(stdlib.GetPoolConnector(pool), opts...)
	if err != nil {
		return nil, err
	}
	settings, err := fenced.SettingsOf("fencepgx.New", over)
	if err != nil {
		return nil, err
	}
	over.SetMaxIdleConns(0) // the pool keeps the idle connections
	over.SetMaxOpenConns(int(pool.Config().MaxConns))
	key := fmt.Sprintf("sqlfence %d", opened.Add(1))
	return &DB{pool: pool, settings: settings, key: key, sql: over}, nil
}

// SQL returns a sql.DB on the connections of the pool, with the same options, for packages tokens, lease, rowlock and
// schema. [DB.Close] closes it.
func (db *DB) SQL() *sql.DB { return db.sql }

// Close closes the pool. It waits until all connections are returned.
func (db *DB) Close() {
	_ = db.sql.Close() // it keeps no connections
	db.pool.Close()
}

// Stat returns the pool's statistics.
func (db *DB) Stat() *pgxpool.Stat { return db.pool.Stat() }

// Config returns a copy of the pool's configuration.
func (db *DB) Config() *pgxpool.Config { return db.pool.Config() }

// Reset closes the pool's connections.
func (db *DB) Reset() { db.pool.Reset() }

// Ping executes an empty statement on a connection.
func (db *DB) Ping(ctx context.Context) error {
	return db.AcquireFunc(ctx, func(c *Conn) error { return c.Ping(ctx) })
}

// Acquire returns a connection of the pool, which must be released. If the option verify.OnConnect finds a wrong
// registration, the error is a *verify.Error.
func (db *DB) Acquire(ctx context.Context) (*Conn, error) {
	if db.settings.ChecksConnections() && !db.verified.Load() {
		if err := db.sql.PingContext(ctx); err != nil {
			return nil, err
		}
		db.verified.Store(true)
	}
	c, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &Conn{acquired: c, session: db.session(c.Conn())}, nil
}

// AcquireFunc calls f with a connection of the pool, and releases it.
func (db *DB) AcquireFunc(ctx context.Context, f func(*Conn) error) error {
	c, err := db.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	return f(c)
}

// mostConns is how many lost connections are tried for a statement, as with database/sql.
const mostConns = 3

// on calls do with a connection of the pool, and with another connection if the first was lost before anything was
// sent. If keep is set and do succeeds, the connection isn't released: the result of do must release it.
func on[T any](ctx context.Context, db *DB, keep bool, do func(*Conn) (T, error)) (T, error) {
	for turn := 1; ; turn++ {
		c, err := db.Acquire(ctx)
		if err != nil {
			var nothing T
			return nothing, err
		}
		got, err := once(c, keep, do)
		if turn == mostConns || !errors.Is(err, driver.ErrBadConn) || errors.Is(err, sqlfence.ErrUnknownOutcome) {
			return got, err
		}
	}
}

// once releases the connection unless it is kept, even if do panics.
func once[T any](c *Conn, keep bool, do func(*Conn) (T, error)) (got T, err error) {
	done := false
	defer func() {
		if !done || err != nil || !keep {
			c.Release()
		}
	}()
	got, err = do(c)
	done = true
	return got, err
}

// Exec executes a statement.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return on(ctx, db, false, func(c *Conn) (pgconn.CommandTag, error) { return c.Exec(ctx, sql, args...) })
}

// Query executes a statement that returns rows, which must be closed or read to their end. A refused write fails here.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	got, err := on(ctx, db, true, func(c *Conn) (*rows, error) { return c.query(ctx, c.Release, sql, args) })
	if err != nil {
		return failedRows{err}, err
	}
	return got, nil
}

// QueryRow executes a statement that returns a row. Its error is that of Scan.
func (db *DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	got, _ := db.Query(ctx, sql, args...) // the rows have the error
	return row{got}
}

// SendBatch sends statements together: see [Conn.SendBatch].
func (db *DB) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	got, err := on(ctx, db, true, func(c *Conn) (pgx.BatchResults, error) { return c.sendBatch(ctx, b, c.Release) })
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return got
}

// CopyFrom copies rows into a table: see [Conn.CopyFrom].
func (db *DB) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource,
) (int64, error) {
	return on(ctx, db, false, func(c *Conn) (int64, error) { return c.CopyFrom(ctx, table, columns, src) })
}

// Begin begins a transaction, which must be committed or rolled back.
func (db *DB) Begin(ctx context.Context) (pgx.Tx, error) { return db.BeginTx(ctx, pgx.TxOptions{}) }

// BeginTx is Begin with options. The transaction's statements without a token in their context have the tokens of ctx.
func (db *DB) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	return on(ctx, db, true, func(c *Conn) (pgx.Tx, error) { return c.begin(ctx, opts, c.Release) })
}
