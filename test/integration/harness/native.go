package harness

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/verify"
)

// Native is package fencepgx as one more base. The tests speak database/sql; so a driver stands above the fence, which
// does with fencepgx's connections as pgx's own driver does with pgx's. The fence of package sqlfence has no part in it.
var Native = Base{Name: "fencepgx", DriverName: "pgx", Dialect: sqlfence.Postgres, OneAtATime: true, native: true}

// Natively has [EachBase] and [EachStore] run each test over package fencepgx, too. It is for a TestMain.
func Natively() {
	Bases, Stores = append(Bases, Native), append(Stores, Native)
}

// openNative opens the database with fencepgx. c may be nil.
func (b Base) openNative(t testing.TB, dsn string, c *Counter, opts []sqlfence.Option) (*sql.DB, error) {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 1000 // database/sql decides
	config.PrepareConn = func(ctx context.Context, c *pgx.Conn) (bool, error) {
		if to, ok := ctx.Value(beneath{}).(**pgx.Conn); ok {
			*to = c
		}
		return true, nil
	}
	config.AfterRelease = func(*pgx.Conn) bool { return false } // database/sql has closed it
	if c != nil {
		config.ConnConfig.Tracer = nativeTracer{c}
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		return nil, err
	}
	db, err := fencepgx.New(pool, opts...)
	if err != nil {
		pool.Close()
		return nil, err
	}
	t.Cleanup(db.Close)
	above := sql.OpenDB(nativeConnector{db})
	natives.Store(above, db)
	t.Cleanup(func() { natives.Delete(above) })
	return above, nil
}

// natives are the *fencepgx.DB beneath databases, by *sql.DB.
var natives sync.Map

// Verify calls verify.Check, which needs a database/sql handle.
func Verify(ctx context.Context, db *sql.DB) ([]verify.Finding, error) {
	if under, ok := natives.Load(db); ok {
		db = under.(*fencepgx.DB).SQL()
	}
	return verify.Check(ctx, db)
}

// Fencepgx returns the fencepgx.DB under a database that [Native] opened; false for another database.
func Fencepgx(db *sql.DB) (*fencepgx.DB, bool) {
	under, ok := natives.Load(db)
	if !ok {
		return nil, false
	}
	return under.(*fencepgx.DB), true
}

// beneath is the key, in the context of an Acquire, of where its connection is noted.
type beneath struct{}

type nativeConnector struct{ db *fencepgx.DB }

// Driver is the fenced one, by which package sqlfence, and those on top, find the dialect and the options.
func (n nativeConnector) Driver() driver.Driver { return n.db.SQL().Driver() }

func (n nativeConnector) Connect(ctx context.Context) (driver.Conn, error) {
	var under *pgx.Conn
	c, err := n.db.Acquire(context.WithValue(ctx, beneath{}, &under))
	if err != nil {
		return nil, err
	}
	return &nativeConn{fencedConn: c, under: under}, nil
}

// fencedConn leaves the name Conn to the method.
type fencedConn = fencepgx.Conn

type nativeConn struct {
	*fencedConn
	under    *pgx.Conn
	prepared int
}

var (
	_ fullConn                 = (*nativeConn)(nil)
	_ driver.NamedValueChecker = (*nativeConn)(nil)
	_ driver.SessionResetter   = (*nativeConn)(nil)
)

func (c *nativeConn) Close() error {
	c.Release()
	return nil
}

func (c *nativeConn) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c *nativeConn) ResetSession(context.Context) error {
	if c.under.IsClosed() || c.under.PgConn().TxStatus() != 'I' {
		return driver.ErrBadConn
	}
	return nil
}

func (c *nativeConn) Ping(ctx context.Context) error {
	if c.under.IsClosed() {
		return driver.ErrBadConn
	}
	return c.fencedConn.Ping(ctx)
}

// unsent returns driver.ErrBadConn for an error after which nothing was sent, as pgx's driver does.
func unsent(err error) error {
	if err != nil && pgconn.SafeToRetry(err) {
		return driver.ErrBadConn
	}
	return err
}

func values(args []driver.NamedValue) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		all[i] = arg.Value
	}
	return all
}

func (c *nativeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(called(ctx, "exec"), query, args)
}

func (c *nativeConn) exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.under.IsClosed() {
		return nil, driver.ErrBadConn
	}
	tag, err := c.Exec(ctx, query, values(args)...)
	return driver.RowsAffected(tag.RowsAffected()), unsent(err)
}

// decoded are the types of which database/sql gets values: of the others it gets their texts.
var decoded = pgx.QueryResultFormatsByOID{
	pgtype.BoolOID: 1, pgtype.ByteaOID: 1, pgtype.DateOID: 1, pgtype.Float4OID: 1, pgtype.Float8OID: 1, pgtype.Int2OID: 1,
	pgtype.Int4OID: 1, pgtype.Int8OID: 1, pgtype.OIDOID: 1, pgtype.TimestampOID: 1, pgtype.TimestamptzOID: 1,
}

func (c *nativeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(called(ctx, "query"), query, args)
}

func (c *nativeConn) query(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.under.IsClosed() {
		return nil, driver.ErrBadConn
	}
	rows, err := c.Query(ctx, query, append([]any{decoded}, values(args)...)...)
	if err != nil {
		return nil, unsent(err)
	}
	more := rows.Next() // only then the columns are known
	if err := rows.Err(); err != nil {
		rows.Close()
		return nil, err
	}
	return &nativeRows{Rows: rows, types: c.under.TypeMap(), ahead: true, more: more}, nil
}

// Begin is BeginTx's deprecated form.
func (c *nativeConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

var nativeLevels = map[sql.IsolationLevel]pgx.TxIsoLevel{
	sql.LevelDefault: "", sql.LevelReadUncommitted: pgx.ReadUncommitted, sql.LevelReadCommitted: pgx.ReadCommitted,
	sql.LevelRepeatableRead: pgx.RepeatableRead, sql.LevelSnapshot: pgx.RepeatableRead, sql.LevelSerializable: pgx.Serializable,
}

func (c *nativeConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.under.IsClosed() {
		return nil, driver.ErrBadConn
	}
	level, ok := nativeLevels[sql.IsolationLevel(opts.Isolation)]
	if !ok {
		return nil, fmt.Errorf("unsupported isolation: %v", opts.Isolation)
	}
	with := pgx.TxOptions{IsoLevel: level}
	if opts.ReadOnly {
		with.AccessMode = pgx.ReadOnly
	}
	tx, err := c.fencedConn.BeginTx(called(ctx, "begin"), with)
	if err != nil {
		return nil, err
	}
	return nativeTx{ctx, tx}, nil
}

type nativeTx struct {
	ctx context.Context
	tx  pgx.Tx
}

func (t nativeTx) Commit() error   { return t.tx.Commit(t.ctx) }
func (t nativeTx) Rollback() error { return t.tx.Rollback(t.ctx) }

// Prepare is PrepareContext's older form.
func (c *nativeConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext prepares a statement by a name of its own, as a program of pgx's does.
func (c *nativeConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.under.IsClosed() {
		return nil, driver.ErrBadConn
	}
	c.prepared++
	name := fmt.Sprintf("statement %d", c.prepared)
	made, err := c.fencedConn.Prepare(called(ctx, "prepare"), name, query)
	if err != nil {
		return nil, err
	}
	return &nativeStmt{c, name, len(made.ParamOIDs)}, nil
}

type nativeStmt struct {
	c      *nativeConn
	name   string
	inputs int
}

func (s *nativeStmt) NumInput() int { return s.inputs }

func (s *nativeStmt) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.c.Deallocate(ctx, s.name)
}

func (s *nativeStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.c.exec(called(ctx, "stmt exec"), s.name, args)
}

func (s *nativeStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.c.query(called(ctx, "stmt query"), s.name, args)
}

var errOlder = errors.New("database/sql calls another method")

// Exec is ExecContext's older form.
func (s *nativeStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errOlder }

// Query is QueryContext's older form.
func (s *nativeStmt) Query([]driver.Value) (driver.Rows, error) { return nil, errOlder }

type nativeRows struct {
	pgx.Rows
	types       *pgtype.Map
	ahead, more bool // the first row has been read, and there is one
}

func (r *nativeRows) Columns() []string {
	var names []string
	for _, field := range r.FieldDescriptions() {
		names = append(names, field.Name)
	}
	return names
}

// ColumnTypeDatabaseTypeName returns the name of a column's type.
func (r *nativeRows) ColumnTypeDatabaseTypeName(i int) string {
	known, ok := r.types.TypeForOID(r.FieldDescriptions()[i].DataTypeOID)
	if !ok {
		return ""
	}
	return strings.ToUpper(known.Name)
}

func (r *nativeRows) Close() error {
	r.Rows.Close()
	return r.Err()
}

func (r *nativeRows) Next(dest []driver.Value) error {
	if !r.ahead {
		r.more = r.Rows.Next()
	}
	r.ahead = false
	if !r.more {
		if err := r.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	raw := r.RawValues()
	for i, field := range r.FieldDescriptions() {
		var err error
		if dest[i], err = r.value(field, raw[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *nativeRows) value(field pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	if raw == nil {
		return nil, nil
	}
	if decoded[field.DataTypeOID] == 0 {
		return string(raw), nil
	}
	known, _ := r.types.TypeForOID(field.DataTypeOID)
	return known.Codec.DecodeDatabaseSQLValue(r.types, field.DataTypeOID, field.Format, raw)
}

// called notes, for a nativeTracer, by which call something is sent.
func called(ctx context.Context, kind string) context.Context {
	return context.WithValue(ctx, kindKey{}, kind)
}

type kindKey struct{}

// A nativeTracer tells a counter what reaches pgx.
type nativeTracer struct{ c *Counter }

func (n nativeTracer) add(ctx context.Context, text string) {
	if kind, ok := ctx.Value(kindKey{}).(string); ok {
		n.c.add(kind, text, nil)
	}
}

func (n nativeTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	n.add(ctx, data.SQL)
	return ctx
}

func (n nativeTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TracePrepareStart counts what the test prepares: what pgx prepares for itself is part of a query.
func (n nativeTracer) TracePrepareStart(ctx context.Context, _ *pgx.Conn, data pgx.TracePrepareStartData) context.Context {
	if ctx.Value(kindKey{}) == "prepare" {
		n.add(ctx, data.SQL)
	}
	return ctx
}

func (n nativeTracer) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}
