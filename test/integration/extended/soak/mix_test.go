package soak_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The soak test mixes all ways in which an application uses a *sql.DB. Its contexts may end at any time.

// soakTexts returns statements on the fenced tables books and pens and on the unregistered table notes. Each statement
// takes two arguments.
func soakTexts(t *testing.T, b harness.Base) (texts []string) {
	t.Helper()
	for _, query := range soakQueries {
		texts = append(texts, b.Text(t, query))
	}
	return texts
}

var soakQueries = []string{
	"UPDATE books SET price = price + $1 WHERE id = $2",
	"UPDATE books SET price = price + $1 WHERE id <= $2 RETURNING id, price",
	"INSERT INTO books (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price RETURNING id, price",
	"UPDATE pens SET price = price + $1 WHERE id = $2",
	"UPDATE pens SET price = $1 WHERE id <= $2 RETURNING id, price",
	"INSERT INTO notes (id, price) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
	"UPDATE notes SET price = $1 WHERE id <= $2 RETURNING id, price",
	"SELECT a.id, b.id FROM notes a, notes b WHERE a.id >= $1 AND b.id >= $2",
	"SELECT id, price FROM books WHERE price >= $1 AND id <= $2",
	"TRUNCATE books; DELETE FROM books WHERE id = $1 AND price = $2", // refused, or a syntax error
}

// A soaker is one of the concurrent users of a pool.
type soaker struct {
	*rand.Rand
	db     *sql.DB
	texts  []string
	shared []*sql.Stmt // prepared once by db, for each text except the last
}

// step runs one random operation as an application would, and closes everything that it has opened.
func (s *soaker) step(ctx context.Context) error {
	ctx, cancel := s.limit(s.hold(ctx))
	defer cancel()
	switch s.IntN(6) {
	case 0, 1:
		return s.use(ctx, cancel, s.db)
	case 2:
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range 1 + s.IntN(3) {
			err = errors.Join(err, s.use(ctx, cancel, conn))
		}
		if s.IntN(4) == 0 {
			err = errors.Join(err, s.inTx(ctx, cancel, conn))
		}
		return err
	default:
		return s.inTx(ctx, cancel, s.db)
	}
}

// hold returns a context with the newest tokens; in one of ten cases with stale tokens, and in one with no token.
func (s *soaker) hold(ctx context.Context) context.Context {
	value := int64(5)
	switch s.IntN(10) {
	case 0:
		return ctx
	case 1:
		value = 4
	}
	return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: value}, sqlfence.Token{Name: "pens", Value: value})
}

// limit returns a context that in a third of the cases ends at a random moment within 5 ms.
func (s *soaker) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	moment := time.Duration(s.IntN(5_000)) * time.Microsecond
	switch s.IntN(6) {
	case 0:
		return context.WithTimeout(ctx, moment)
	case 1:
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(moment, cancel)
		return ctx, func() { timer.Stop(); cancel() }
	}
	return context.WithCancel(ctx)
}

func (s *soaker) inTx(ctx context.Context, cancel func(), b interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}) error {
	tx, err := b.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for range 1 + s.IntN(3) {
		err = errors.Join(err, s.use(ctx, cancel, tx))
	}
	if err != nil || s.IntN(3) == 0 {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// use runs a random statement in a random way.
func (s *soaker) use(ctx context.Context, cancel func(), r harness.Runner) error {
	i := s.IntN(len(s.texts))
	text, args := s.texts[i], []any{1 + s.IntN(9), 1 + s.IntN(9)}
	// A prepared statement that returns rows must run as a query, because mattn's Exec stops at the first row and keeps
	// its locks.
	returns := strings.Contains(text, "RETURNING") || strings.HasPrefix(text, "SELECT")
	query := returns || s.IntN(2) == 0
	switch s.IntN(3) {
	case 0: // prepared for this call
		stmt, err := r.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		return errors.Join(s.run(ctx, cancel, stmt, query, args), stmt.Close())
	case 1: // prepared by db at the start
		if i == len(s.shared) {
			break
		}
		switch r := r.(type) {
		case *sql.DB:
			return s.run(ctx, cancel, s.shared[i], query, args)
		case *sql.Tx:
			// If Rollback meets a broken connection, database/sql doesn't close the transaction's statement, and never
			// closes the shared statement.
			stmt := r.StmtContext(ctx, s.shared[i])
			return errors.Join(s.run(ctx, cancel, stmt, query, args), stmt.Close())
		}
	}
	if query {
		rows, err := r.QueryContext(ctx, text, args...)
		return s.read(cancel, rows, err)
	}
	_, err := r.ExecContext(ctx, text, args...)
	return err
}

func (s *soaker) run(ctx context.Context, cancel func(), stmt *sql.Stmt, query bool, args []any) error {
	if query {
		rows, err := stmt.QueryContext(ctx, args...)
		return s.read(cancel, rows, err)
	}
	_, err := stmt.ExecContext(ctx, args...)
	return err
}

// read reads rows to the end. At random it closes the rows early, or cancels their context.
func (s *soaker) read(cancel func(), rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	stop, end := s.IntN(8), s.IntN(8)
	for n := 0; rows.Next(); n++ {
		var a, b any
		if err := rows.Scan(&a, &b); err != nil {
			return errors.Join(err, rows.Close())
		}
		switch {
		case n == stop && s.IntN(2) == 0:
			return rows.Close()
		case n == end && s.IntN(4) == 0:
			cancel()
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
