package conformance_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/conformance"
	"github.com/sqlfence/sqlfence/internal/test/random"
)

// The suite must be able to fail. Each sabotage is a fault that a driver or a
// wrapper could have, and names the checks that have to notice it: with nothing
// registered and, if they are made then, with the table registered.
var sabotages = []struct {
	name    string
	fault   fault
	options []sqlfence.Option
	noticed []string
}{
	{name: "loses SessionResetter and Validator", fault: fault{conn: func(c driver.Conn) driver.Conn { return withoutSession(c.(*faultyConn)) }},
		noticed: []string{"connection interfaces", "cancelled transaction"}},
	{name: "converts arguments as by default", fault: fault{checked: convert},
		noticed: []string{"values"}},
	{name: "asks Valuers twice", fault: fault{skips: true},
		noticed: []string{"valuers"}},
	{name: "loses the names of arguments", fault: fault{args: unnamed},
		noticed: []string{"named arguments"}},
	{name: "doesn't count arguments", fault: fault{stmt: func(s driver.Stmt) driver.Stmt { return uncounted{s.(fullStmt)} }},
		noticed: []string{"connection interfaces", "argument counts"}},
	{name: "turns integers into text", fault: fault{rows: func(r driver.Rows) driver.Rows { return textual{r} }},
		noticed: []string{"values", "scanning", "column types", "prepared statements"}},
	{name: "loses the rows' interfaces", fault: fault{rows: func(r driver.Rows) driver.Rows { return plainRows{r} }},
		noticed: []string{"rows interfaces", "column types", "result sets"}},
	{name: "claims result sets", fault: fault{rows: func(r driver.Rows) driver.Rows { return &endless{Rows: r} }},
		noticed: []string{"rows interfaces", "result sets"}},
	{name: "fails to close rows", fault: fault{rows: func(r driver.Rows) driver.Rows { return unclosable{r} }},
		noticed: []string{"rows closed early", "cancelled rows", "rows interfaces"}},
	{name: "loses the results", fault: fault{exec: replaced(driver.ResultNoRows)},
		noticed: []string{"results", "empty statements", "valuers", "cancelled before", "named arguments", "argument counts", "many goroutines"}},
	{name: "loses the last id", fault: fault{exec: replaced(driver.RowsAffected(1))},
		noticed: []string{"results"}},
	{name: "wraps errors", fault: fault{err: func(err error) error { return fmt.Errorf("wrapped: %w", err) }},
		noticed: []string{"errors", "errors in transactions", "deadline", "driver's error"}},
	{name: "joins errors", fault: fault{err: func(err error) error { return errors.Join(err) }},
		noticed: []string{"errors", "errors in transactions", "deadline", "driver's error"}},
	{name: "says nothing of the errors' types", fault: fault{err: func(err error) error { return errors.New(err.Error()) }},
		noticed: []string{"errors", "errors in transactions", "deadline", "driver's error"}},
	{name: "hides errors", fault: fault{exec: hidden},
		noticed: []string{"errors", "errors in transactions", "stale writes", "all or nothing", "driver's error", "token at execution",
			"paused writer", "single use", "keys", "unknown name", "bypass and observe", "observer"}},
	{name: "calls any error a bad connection", fault: fault{err: func(error) error { return driver.ErrBadConn }},
		noticed: []string{"pool", "stale writes", "all or nothing", "single use", "keys", "unknown name"}},
	{name: "fails to close connections", fault: fault{closing: errSabotage},
		noticed: []string{"use after close"}},
	{name: "closes the connector twice", fault: fault{close: twice},
		noticed: []string{"connector closed"}},
	{name: "doesn't close the connector", fault: fault{close: func(driver.Connector) error { return nil }},
		noticed: []string{"connector closed"}},
	{name: "hides the connection",
		noticed: []string{"raw connection"}},
	{name: "drops the isolation level", fault: fault{begin: func(driver.TxOptions) driver.TxOptions { return driver.TxOptions{} }},
		noticed: []string{"isolation levels"}},
	{name: "rolls back instead of committing", fault: fault{commit: driver.Tx.Rollback},
		noticed: []string{"end of transactions", "isolation levels", "errors in transactions", "prepared statements", "current writes"}},
	{name: "doesn't ping", fault: fault{ping: errSabotage},
		noticed: []string{"ping"}},
	{name: "executes twice", fault: fault{exec: func(_ string, exec func() (driver.Result, error)) (driver.Result, error) {
		_, _ = exec()
		return exec()
	}},
		noticed: []string{"many goroutines", "prepared statements", "results", "round trips", "pool", "current writes"}},
	{name: "doesn't execute", fault: fault{exec: neglected},
		noticed: []string{"current writes", "competing writers", "token at execution", "paused writer", "keys", "bypass and observe"}},
	{name: "leaks statements", fault: fault{stmt: func(s driver.Stmt) driver.Stmt { return leaking{s.(fullStmt)} }},
		noticed: []string{"nothing leaks"}},
	{name: "loses the caller's context", fault: fault{ctx: func(context.Context) context.Context { return context.Background() }},
		noticed: []string{"contexts", "deadline"}},
	{name: "changes texts", fault: fault{text: func(query, _ string) string { return query + " -- sent by us" }},
		noticed: []string{"other tables"}},
	{name: "ignores what the guard raises", fault: fault{text: func(query, _ string) string { return unraised(query) }},
		noticed: []string{"stale writes", "unissued tokens", "all or nothing", "driver's error", "token at execution", "paused writer", "single use", "keys", "claims", "claims of another table",
			"unknown name", "bypass and observe", "observer"}},
	{name: "misstates the newer token", fault: fault{text: func(query, _ string) string { return strings.ReplaceAll(query, ":stale:0:' ||", ":stale:0:1' ||") }},
		noticed: []string{"stale writes", "all or nothing", "token at execution", "paused writer", "single use", "bypass and observe"}},
	{name: "sends what was refused", options: []sqlfence.Option{sqlfence.WithMode(sqlfence.Observe)},
		noticed: []string{"fail closed", "no token", "stale writes", "all or nothing", "driver's error", "token at execution", "paused writer",
			"single use", "keys", "claims", "claims of another table", "unknown name", "bypass and observe", "observer", "round trips"}},
}

var errSabotage = errors.New("sabotage")

func convert(v *driver.NamedValue) (err error) {
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	return err
}

func unnamed(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Name = ""
	}
	return args
}

func replaced(result driver.Result) func(string, func() (driver.Result, error)) (driver.Result, error) {
	return func(_ string, exec func() (driver.Result, error)) (driver.Result, error) {
		_, err := exec()
		return result, err
	}
}

func hidden(_ string, exec func() (driver.Result, error)) (driver.Result, error) {
	if res, err := exec(); err == nil {
		return res, nil
	}
	return driver.RowsAffected(0), nil
}

// neglected executes a check's preparations, and ignores writes to books.
func neglected(query string, exec func() (driver.Result, error)) (driver.Result, error) {
	if strings.Contains(query, "books") {
		return driver.RowsAffected(1), nil
	}
	return exec()
}

// unraised returns a guarded statement whose guard throws no error.
func unraised(query string) string {
	return strings.ReplaceAll(query, "json_extract('{}',", "COALESCE(")
}

func twice(c driver.Connector) error {
	closer, ok := c.(interface{ Close() error })
	if !ok {
		return nil
	}
	_ = closer.Close()
	return closer.Close()
}

// withoutSession returns c without SessionResetter and Validator.
func withoutSession(c *faultyConn) driver.Conn {
	return struct {
		driver.Conn
		driver.ConnBeginTx
		driver.ConnPrepareContext
		driver.ExecerContext
		driver.QueryerContext
		driver.Pinger
		driver.NamedValueChecker
	}{c, c, c, c, c, c, c}
}

// sabotaged returns a harness whose fenced databases have the fault, and the options.
func sabotaged(f fault, options ...sqlfence.Option) conformance.Harness {
	h := harness(conformance.Full)
	h.Open = func(c driver.Connector, opts ...sqlfence.Option) (*sql.DB, error) {
		return sqlfence.OpenDB(faulty{c, f}, append(opts, options...)...)
	}
	return h
}

// base returns the name of the check that a result is of.
func base(r conformance.Result) string {
	name, _, _ := strings.Cut(r.Name, "/")
	return name
}

// Without a fault the sabotaged driver fails only the check of the connection's type.
func TestNoFaultIsNoticedByItsTypeOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, r := range conformance.Check(t, sabotaged(fault{})).Results {
			if failed := r.Outcome != conformance.Passed; failed != (base(r) == "raw connection") {
				t.Errorf("%s: %v: %s", r.Name, r.Outcome, r.Reason)
			}
		}
	})
}

func TestEachCheckCanFail(t *testing.T) {
	names := conformance.CheckNames()
	noticed := map[string]bool{}
	for _, s := range sabotages {
		for _, name := range s.noticed {
			noticed[name] = true
			if !slices.Contains(names, name) {
				t.Errorf("%s: there is no check %q", s.name, name)
			}
		}
	}
	for _, s := range random.Sample(sabotages) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := sabotaged(s.fault, s.options...)
			h.Skip = allBut(s.noticed...)
			synctest.Test(t, func(t *testing.T) {
				halves := map[string]bool{}
				for _, r := range conformance.Check(t, h).Results {
					if !slices.Contains(s.noticed, base(r)) {
						continue
					}
					halves[r.Half] = true
					if r.Outcome != conformance.Failed || r.Reason == "" {
						t.Errorf("the check %q doesn't notice, with a reason: %v", r.Name, r.Outcome)
					}
				}
				for _, r := range conformance.CheckNothing(t, h) {
					if halves[r.Half] && r.Outcome != conformance.Passed {
						t.Errorf("no check is needed to notice: %s", r.Reason)
					}
				}
			})
		})
	}
	for _, name := range names {
		if !noticed[name] {
			t.Errorf("no sabotage is for the check %q", name)
		}
	}
}

// If sqlfence's connection says that it can be kept, and the driver's can't, a check fails.
func TestClaimedInterfacesAreNoticed(t *testing.T) {
	t.Parallel()
	h := harness(conformance.Checks)
	h.Open = func(c driver.Connector, opts ...sqlfence.Option) (*sql.DB, error) {
		return sqlfence.OpenDB(keeping{c}, opts...)
	}
	h.Skip = allBut("connection interfaces")
	synctest.Test(t, func(t *testing.T) {
		for _, r := range conformance.Check(t, h).Results {
			if base(r) == "connection interfaces" && (r.Outcome != conformance.Failed || r.Reason == "") {
				t.Errorf("%s: %v, want a failure with a reason", r.Name, r.Outcome)
			}
		}
	})
}

// The suite detects a hole for a single kind of statement that is sent in a single way.
func TestEachKindOfWriteIsTriedByEachWay(t *testing.T) {
	for kind, is := range map[string]func(query string) bool{
		"UPDATE":           func(q string) bool { return strings.HasPrefix(q, "UPDATE") && !strings.Contains(q, "RETURNING") },
		"UPDATE RETURNING": func(q string) bool { return strings.HasPrefix(q, "UPDATE") && strings.Contains(q, "RETURNING") },
		"DELETE":           func(q string) bool { return strings.HasPrefix(q, "DELETE") && !strings.Contains(q, "RETURNING") },
		"DELETE RETURNING": func(q string) bool { return strings.HasPrefix(q, "DELETE") && strings.Contains(q, "RETURNING") },
		"INSERT": func(q string) bool {
			return strings.HasPrefix(q, "INSERT") && !strings.Contains(q, "RETURNING") && !strings.Contains(q, "ON CONFLICT")
		},
		"INSERT RETURNING": func(q string) bool { return strings.HasPrefix(q, "INSERT") && strings.Contains(q, "RETURNING") },
		"upsert":           func(q string) bool { return strings.Contains(q, "ON CONFLICT") },
		"no arguments":     func(q string) bool { return strings.Contains(q, "price = 30") },
		"row fence":        func(q string) bool { return !strings.Contains(q, "fencing_tokens") },
		"ledger":           func(q string) bool { return strings.Contains(q, "fencing_tokens") },
	} {
		for _, way := range []string{"exec", "query", "prepare"} {
			t.Run(kind+" by "+way, func(t *testing.T) {
				t.Parallel()
				h := sabotaged(fault{text: func(query, by string) string {
					if by == way && is(query) {
						return unraised(query)
					}
					return query
				}})
				h.Skip = allBut("stale writes")
				if failed := conformance.Check(t, h).Failed(); len(failed) != 1 {
					t.Errorf("failed: %v, want the stale writes", failed)
				}
			})
		}
	}
}

// allBut skips all checks but these.
func allBut(names ...string) map[string]string {
	skip := map[string]string{}
	for _, name := range conformance.CheckNames() {
		if !slices.Contains(names, name) {
			skip[name] = "not of interest"
		}
	}
	return skip
}
