package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/sqlfence/sqlfence"
)

var cancelChecks = []check{
	{name: "cancelled before", steps: cancelledBefore,
		explanation: "With a context that has ended each kind of call returns what it returns with the driver alone, " +
			"and nothing is done."},
	{name: "cancelled transaction", varies: true, steps: cancelledTransaction,
		explanation: "When its context ends, a transaction is rolled back, and its connection kept or dropped as with " +
			"the driver alone."},
	{name: "cancelled rows", varies: true, steps: cancelledRows,
		explanation: "When their context ends, open rows end, and their connection is kept or dropped, as with the " +
			"driver alone."},
	{name: "deadline", varies: true, steps: deadline,
		explanation: "A statement that runs past its deadline is stopped, with the driver's error, by itself or in " +
			"ErrUnknownOutcome, and nothing is changed."},
}

func cancelledBefore(s *side) {
	prepared := must(s.db.PrepareContext(s.ctx, "UPDATE books SET price = 20 WHERE id = 1"))
	tx := must(s.db.BeginTx(s.ctx, nil))
	ctx, cancel := context.WithCancelCause(s.ctx)
	cancel(errors.New("no more"))
	s.show("exec", resultText(s.db.ExecContext(ctx, "UPDATE books SET price = 20")))
	s.show("query", rowsText(s.db.QueryContext(ctx, "SELECT id FROM books")))
	s.show("row", s.db.QueryRowContext(ctx, "SELECT id FROM books").Scan(new(int)))
	s.show("prepare", errorOf(s.db.PrepareContext(ctx, "SELECT id FROM books")))
	s.show("begin", errorOf(s.db.BeginTx(ctx, nil)))
	s.show("connection", errorOf(s.db.Conn(ctx)))
	s.show("ping", s.db.PingContext(ctx))
	s.show("prepared exec", resultText(prepared.ExecContext(ctx)))
	s.show("prepared query", rowsText(prepared.QueryContext(ctx)))
	s.show("exec in transaction", resultText(tx.ExecContext(ctx, "UPDATE books SET price = 20")))
	s.show("query in transaction", rowsText(tx.QueryContext(ctx, "SELECT id FROM books")))
	s.show("prepare in transaction", errorOf(tx.PrepareContext(ctx, "UPDATE books SET price = 20")))
	s.show("the transaction lives on",
		resultText(tx.ExecContext(s.ctx, "UPDATE books SET price = 30 WHERE id = 3")), tx.Commit())
	s.show("the statement lives on", resultText(prepared.ExecContext(s.ctx)), prepared.Close())
	s.show("left", rowsText(s.db.QueryContext(s.ctx, "SELECT id, price FROM books ORDER BY id")))
}

// settle waits until no connection is in use, and logs the state of the pool.
func (s *side) settle(step string) {
	s.eventually("the connection is free", func() bool { return s.db.Stats().InUse == 0 })
	s.show(step+", pool", statsText(s.db.Stats()))
	s.show(step+", left", rowsText(s.db.QueryContext(context.Background(), "SELECT id, price FROM books ORDER BY id")))
}

func cancelledTransaction(s *side) {
	s.db.SetMaxOpenConns(1)
	for _, write := range []bool{true, false} {
		ctx, cancel := context.WithCancel(s.ctx)
		tx := must(s.db.BeginTx(ctx, nil))
		step := "read"
		if write {
			step = "write"
			s.show(step, resultText(tx.ExecContext(s.ctx, "UPDATE books SET price = 20")))
		} else {
			s.show(step, rowsText(tx.QueryContext(s.ctx, "SELECT id FROM books ORDER BY id")))
		}
		cancel()
		s.settle(step)
		s.show(step+", commit", tx.Commit(), tx.Rollback())
		s.show(step+", exec", errorOf(tx.ExecContext(s.ctx, "UPDATE books SET price = 20")))
	}
}

func cancelledRows(s *side) {
	s.db.SetMaxOpenConns(1)
	for _, query := range []string{"SELECT id FROM books ORDER BY id",
		"SELECT a.id FROM books a, books b, books c, books d"} {
		ctx, cancel := context.WithCancel(s.ctx)
		rows := must(s.db.QueryContext(ctx, query))
		s.show(query, rows.Next())
		cancel()
		s.eventually("the rows know", func() bool { return rows.Err() != nil })
		s.eventually("the connection is free", func() bool { return s.db.Stats().InUse == 0 })
		s.show(query+", cancelled", rows.Next(), rows.Err(), rows.Scan(new(int)), rows.Close())
		s.settle(query)
	}
}

// deadline checks that a context's deadline ends a query and a guarded statement. It starts them before the deadline,
// because some drivers miss an interruption that comes before the database has begun.
func deadline(s *side) {
	s.db.SetMaxOpenConns(1)
	guarded := "UPDATE books SET price = 99 WHERE " + s.slow + " > 0"
	for _, query := range []string{"SELECT " + s.slow, guarded} {
		s.must(s.db.PingContext(s.ctx)) // connecting is not to take of its time
		ctx, cancel := context.WithTimeout(s.ctx, 30*time.Millisecond)
		res, err := s.db.ExecContext(ctx, query)
		cancel()
		s.show(query+", exec", resultText(res, cause(err)))
		s.settle(query + ", exec")

		s.must(s.db.PingContext(s.ctx))
		ctx, cancel = context.WithTimeout(s.ctx, 30*time.Millisecond)
		rows, err := s.db.QueryContext(ctx, query)
		s.show(query+", query", stoppedRowsText(rows, err, cause))
		cancel()
		s.settle(query + ", query")

		prepared := must(s.db.PrepareContext(s.ctx, query))
		ctx, cancel = context.WithTimeout(s.ctx, 30*time.Millisecond)
		res, err = prepared.ExecContext(ctx)
		cancel()
		s.show(query+", prepared", resultText(res, cause(err)), prepared.Close())
		s.settle(query + ", prepared")
	}
}

// cause returns the driver's error of a guarded write that was stopped: whether it was applied isn't known.
func cause(err error) error {
	var unknown interface{ Cause() error }
	if errors.Is(err, sqlfence.ErrUnknownOutcome) && errors.As(err, &unknown) {
		return unknown.Cause()
	}
	return err
}
