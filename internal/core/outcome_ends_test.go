package core_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
	"github.com/sqlfence/sqlfence/internal/test/random"
)

// An outcomeEnd is how a call of the base driver ends.
type outcomeEnd struct {
	name    string
	cancels bool  // the context of the application's call ends
	err     error // nil with panics, or for success
	panics  bool
	known   bool // the error shows that the statement left nothing
}

// outcomeEnds are the ends of a call on a database.
func outcomeEnds(d sqlfence.Dialect) []outcomeEnd {
	var failed, ended error = coded("23505"), coded("57P01")
	if d == sqlfence.MySQL {
		failed, ended = &mysqlError{1062, "Duplicate entry"}, &mysqlError{1053, "Server shutdown in progress"}
	}
	ends := []outcomeEnd{
		{name: "answered by an error", err: failed, known: true},
		{name: "the driver's own error", err: errEnding, known: true},
		{name: "the context ends after the answer", cancels: true},
		{name: "the context ends in flight", cancels: true, err: context.Canceled},
		{name: "the deadline passes in flight", err: context.DeadlineExceeded},
		{name: "the network ends", err: io.ErrUnexpectedEOF},
		{name: "the network is reset", err: errReset},
		{name: "panics", panics: true},
	}
	if d != sqlfence.SQLite { // SQLite has no connection to lose
		ends = append(ends,
			outcomeEnd{name: "the connection is bad", err: driver.ErrBadConn},
			outcomeEnd{name: "the server ends the session", err: ended})
	}
	return ends
}

// outcomeCalls are the calls of the base driver that may end in such a way, by purpose.
var outcomeCalls = []string{"reset", "ping", "prepare", "begin", "savepoint", "select", "select row", "update", "update row",
	"update close", "delete", "create", "commit", "rollback"}

// outcomeSettling are the calls that commit a write.
var outcomeSettling = []string{"update", "update row", "update close", "create", "commit"}

// An outcomeUse is a program's use of the database. rows: the use reads rows, and database/sql also watches their
// context.
type outcomeUse struct {
	mySQL bool // the use is for MySQL only
	rows  bool
	texts bool // statements begin and end the transaction, untracked
	write bool // the use commits a guarded write unless it fails
	do    func(ctx context.Context, db *sql.DB) error
}

func outcomeTx(end func(*sql.Tx) error, queries ...string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for _, query := range queries {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				_ = tx.Rollback() // not deferred: after a panic of the base driver it would wait forever
				return err
			}
		}
		return end(tx)
	}
}

// outcomeLeave releases an ended transaction.
func outcomeLeave(tx *sql.Tx) error { _ = tx.Commit(); return nil }

func outcomeExec(query string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error { _, err := db.ExecContext(ctx, query); return err }
}

func outcomeQuery(query string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	}
}

var outcomeUses = map[string]outcomeUse{
	"a write":              {write: true, do: outcomeExec(endingGuarded)},
	"a write by a query":   {write: true, rows: true, do: outcomeQuery(endingGuarded + " RETURNING id")},
	"a read":               {rows: true, do: outcomeQuery("SELECT price FROM books")},
	"a read by Exec":       {do: outcomeExec("SELECT price FROM books")},
	"another table":        {do: outcomeExec(endingPlain)},
	"a transaction":        {write: true, do: outcomeTx((*sql.Tx).Commit, "SAVEPOINT a", endingGuarded, "ROLLBACK TO a", endingGuarded)},
	"a rollback":           {do: outcomeTx((*sql.Tx).Rollback, endingGuarded)},
	"a reading one":        {do: outcomeTx((*sql.Tx).Commit, "SELECT price FROM books")},
	"one of another table": {do: outcomeTx((*sql.Tx).Commit, endingPlain)},
	"one that a text ends": {write: true, do: outcomeTx(outcomeLeave, endingGuarded, "COMMIT")},
	"behind a text":        {write: true, do: outcomeTx(outcomeLeave, "COMMIT", endingGuarded)},
	"DDL behind a write": {write: true, mySQL: true,
		do: outcomeTx(outcomeLeave, endingGuarded, "CREATE TABLE a (b int)")},
	"behind DDL": {write: true, mySQL: true, do: outcomeTx(outcomeLeave, "CREATE TABLE a (b int)", endingGuarded)},
	"prepared": {write: true, do: func(ctx context.Context, db *sql.DB) error {
		s, err := db.PrepareContext(ctx, endingGuarded)
		if err != nil {
			return err
		}
		_, err = s.ExecContext(ctx)
		_ = s.Close()
		return err
	}},
	"prepared in a transaction": {write: true, do: func(ctx context.Context, db *sql.DB) error {
		return outcomeTx(func(tx *sql.Tx) error {
			s, err := tx.PrepareContext(ctx, endingGuarded)
			if err == nil {
				_, err = s.ExecContext(ctx)
			}
			if err != nil {
				_ = tx.Rollback()
				return err
			}
			return tx.Commit()
		})(ctx, db)
	}},
	"by texts": {texts: true, write: true, do: func(ctx context.Context, db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		for _, query := range []string{"BEGIN", endingGuarded, "COMMIT"} {
			if _, err := conn.ExecContext(ctx, query); err != nil {
				_ = conn.Close()
				return err
			}
		}
		return conn.Close()
	}},
}

// A write has an unknown outcome if it was sent, directly or with a COMMIT, without a response. An unsent write or a
// read never has an unknown outcome; a write that may have landed without a response always has. With -short the race
// detector, which makes a case ten times as slow, runs a tenth of the cases.
func TestUnknownOutcomeAtAllEnds(t *testing.T) {
	counts := make(map[string]int)
	for _, d := range []sqlfence.Dialect{sqlfence.Postgres, sqlfence.MySQL, sqlfence.SQLite} {
		for _, form := range []string{"neither", "resets", "validates", "resets and validates", "begins without a context"} {
			for name, use := range outcomeUses {
				if use.mySQL && d != sqlfence.MySQL {
					continue
				}
				for _, end := range outcomeEnds(d) {
					for _, call := range outcomeCalls {
						for _, lands := range []bool{false, true} {
							if lands && (end.known || end.err == nil && !end.panics) {
								continue
							}
							o := outcomeTest{d, form, use, end, call, lands}
							name := fmt.Sprintf("%v, %s: %s, %s in %s, lands: %v", d, form, name, end.name, call, lands)
							if fakedb.Race && !random.Keep(t, name) {
								continue
							}
							if kind := o.run(t, name); kind != "" {
								counts[kind]++
							}
						}
					}
				}
			}
		}
	}
	t.Log(counts)
	least := 50
	if fakedb.Race && testing.Short() {
		least = 5 // of a tenth
	}
	for _, kind := range []string{"done", "failed", "unknown", "unknown, landed", "panicked"} {
		if counts[kind] < least {
			t.Errorf("%d cases are %s", counts[kind], kind)
		}
	}
}

type outcomeTest struct {
	dialect sqlfence.Dialect
	form    string
	use     outcomeUse
	end     outcomeEnd
	call    string
	lands   bool
}

// run returns the outcome of the use; empty if the use has no such call.
func (o outcomeTest) run(t *testing.T, name string) (kind string) {
	base := &endingDriver{form: o.form}
	db, err := sqlfence.OpenDB(base, sqlfence.WithDialect(o.dialect), sqlfence.WithTable("books", fenced))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithCancel(with(t.Context(), 7))
	defer cancel()
	if err := o.use.do(ctx, db); err != nil { // sends the connection's own first queries
		t.Fatalf("%s: %v", name, err)
	}
	base.take(map[string]func() error{o.call: func() error {
		if o.end.cancels {
			cancel()
		}
		if o.end.panics {
			panic("the base driver panics")
		}
		return o.end.err
	}})
	base.mu.Lock()
	base.landed, base.lands = false, o.lands
	base.mu.Unlock()
	panicked := func() (panicked any) {
		defer func() { panicked = recover() }()
		err = o.use.do(ctx, db)
		return nil
	}()
	if panicked == nil { // no work continues in the background when the connection is back
		if again, err := db.Conn(t.Context()); err == nil {
			_ = again.Close()
		}
		_ = db.Close()
	}
	base.mu.Lock()
	met, landed := base.met, base.landed
	base.mu.Unlock()
	if met == "" {
		return ""
	}
	unanswered := !o.end.known && o.end.err != nil && slices.Contains(outcomeSettling, met)
	unanswered = unanswered || o.use.texts && met == "update of nothing" && !o.end.known && o.end.err != nil
	unknown := errors.Is(err, sqlfence.ErrUnknownOutcome)
	switch {
	case panicked != nil:
		if !o.end.panics {
			t.Errorf("%s: panic: %v", name, panicked)
		}
		return "panicked"
	case unknown != unanswered && !(o.use.rows && o.end.cancels && errors.Is(err, context.Canceled)):
		t.Errorf("%s: err = %v, landed: %v", name, err, landed)
	case err == nil && o.use.write && !landed:
		t.Errorf("%s: done, but not landed", name)
	case err != nil && !unknown && landed && !strings.HasPrefix(met, "rollback") && !o.use.rows:
		t.Errorf("%s: landed, although err = %v", name, err)
	}
	switch {
	case err == nil:
		return "done"
	case unknown && landed:
		return "unknown, landed"
	case unknown:
		return "unknown"
	}
	return "failed"
}
