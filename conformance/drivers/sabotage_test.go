package drivers

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
	"github.com/sqlfence/sqlfence/conformance"
)

// The conformance suite must be able to fail. Each sabotage is a fault that a
// wrapper could have, and names the checks that have to notice it.
var sabotages = []struct {
	name    string
	base    string // mattn if empty
	fault   fault
	options []sqlfence.Option
	noticed []string
}{
	{name: "claims SessionResetter and Validator", fault: fault{keeps: true},
		noticed: []string{"connection interfaces", "cancelled transaction"}},
	{name: "loses the rows' interfaces", fault: fault{rows: func(r driver.Rows) driver.Rows { return struct{ driver.Rows }{r} }},
		noticed: []string{"rows interfaces", "column types"}},
	{name: "claims result sets", fault: fault{rows: func(r driver.Rows) driver.Rows { return endless{r, new(int)} }},
		noticed: []string{"rows interfaces", "result sets"}},
	{name: "turns integers into text", fault: fault{rows: func(r driver.Rows) driver.Rows { return textual{r} }},
		noticed: []string{"values", "scanning", "column types"}},
	{name: "drops the isolation level", base: "pgx", fault: fault{begin: func(driver.TxOptions) driver.TxOptions { return driver.TxOptions{} }},
		noticed: []string{"isolation levels"}},
	{name: "wraps errors", fault: fault{err: func(err error) error { return fmt.Errorf("wrapped: %w", err) }},
		noticed: []string{"errors", "errors in transactions", "driver's error"}},
	{name: "calls any error a bad connection", fault: fault{err: func(error) error { return driver.ErrBadConn }},
		noticed: []string{"pool", "stale writes", "all or nothing", "single use", "keys", "unknown name"}},
	{name: "executes twice", fault: fault{times: 2},
		noticed: []string{"many goroutines", "prepared statements", "results", "round trips"}},
	{name: "doesn't execute", fault: fault{times: -1},
		noticed: []string{"current writes", "competing writers", "token at execution", "paused writer"}},
	{name: "loses the affected rows", fault: fault{result: driver.ResultNoRows},
		noticed: []string{"results", "empty statements", "valuers", "cancelled before", "named arguments", "argument counts"}},
	{name: "can't count arguments", fault: fault{inputs: -1},
		noticed: []string{"connection interfaces", "argument counts"}},
	{name: "rolls back instead of committing", fault: fault{commit: driver.Tx.Rollback},
		noticed: []string{"end of transactions", "isolation levels"}},
	{name: "doesn't ping", fault: fault{ping: errSabotage}, noticed: []string{"ping"}},
	{name: "loses the connector's Close", fault: fault{open: true}, noticed: []string{"connector closed"}},
	{name: "hides the connection", noticed: []string{"raw connection"}},
	{name: "fails to close", fault: fault{close: errSabotage}, noticed: []string{"use after close"}},
	{name: "leaks statements", fault: fault{leaks: true}, noticed: []string{"nothing leaks"}},
	{name: "drops the caller's context", fault: fault{ctx: func(context.Context) context.Context { return context.Background() }},
		noticed: []string{"contexts"}},
	{name: "fails to close rows", fault: fault{rows: func(r driver.Rows) driver.Rows { return unclosable{r} }},
		noticed: []string{"rows closed early", "cancelled rows", "rows interfaces"}},
	{name: "takes a deadline for something else", fault: fault{err: func(err error) error { return errors.Join(err) }},
		noticed: []string{"deadline", "errors"}},
	{name: "changes the text of statements", fault: fault{query: func(q string) string { return q + " -- sent by us" }},
		noticed: []string{"other tables"}},
	{name: "sends what was refused", options: observing,
		noticed: []string{"fail closed", "no token", "stale writes", "unissued tokens", "all or nothing", "driver's error", "token at execution", "paused writer",
			"single use", "keys", "unknown name", "bypass and observe", "observer", "round trips"}},
}

var (
	errSabotage = errors.New("sabotage")
	observing   = []sqlfence.Option{sqlfence.WithMode(sqlfence.Observe)}
)

func TestConformanceCanFail(t *testing.T) {
	t.Parallel() // it mostly waits
	b := baseNamed(t, "mattn")
	h := target{params: "_synchronous=OFF"}.harness(b)

	// Positive: the harness's own wrapper, without a fault, is noticed by its type only.
	h.Open = func(c driver.Connector, opts ...sqlfence.Option) (*sql.DB, error) {
		return sqlfence.OpenDB(faulty{c, fault{}}, opts...)
	}
	var names []string
	for _, r := range conformance.Check(t, h).Results {
		name, _, _ := strings.Cut(r.Name, "/")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if r.Outcome != conformance.Passed && name != "raw connection" && name != "connector closed" {
			t.Errorf("without a fault: %s: %s", r.Name, r.Reason)
		}
	}

	noticed := map[string]bool{}
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			h := h
			if s.base != "" {
				postgresDSN(t)
				h = target{}.harness(baseNamed(t, s.base))
			}
			h.Open = func(c driver.Connector, opts ...sqlfence.Option) (*sql.DB, error) {
				return sqlfence.OpenDB(faulty{c, s.fault}, append(opts, s.options...)...)
			}
			h.Skip = map[string]string{}
			for _, name := range names {
				if !slices.Contains(s.noticed, name) {
					h.Skip[name] = "not expected to notice"
				}
			}
			failed := map[string]bool{}
			for _, r := range conformance.Check(t, h).Failed() {
				name, _, _ := strings.Cut(r.Name, "/")
				failed[name] = true
				if r.Reason == "" {
					t.Errorf("%s fails without a reason", r.Name)
				}
			}
			for _, name := range s.noticed {
				noticed[name] = true
				if !failed[name] {
					t.Errorf("the check %q doesn't notice", name)
				}
			}
		})
	}
	for _, name := range names {
		if !noticed[name] && !t.Failed() {
			t.Errorf("no sabotage is for the check %q", name)
		}
	}
}

// endless claims that a result set follows.
type endless struct {
	driver.Rows
	n *int
}

func (e endless) HasNextResultSet() bool { return *e.n == 0 }
func (e endless) NextResultSet() error {
	if *e.n++; *e.n > 1 {
		return io.EOF
	}
	return nil
}

// textual rows return integers as text.
type textual struct{ driver.Rows }

func (r textual) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	for i, v := range dest {
		if n, ok := v.(int64); ok {
			dest[i] = fmt.Sprint(n)
		}
	}
	return err
}

// unclosable rows fail when they are closed.
type unclosable struct{ driver.Rows }

func (r unclosable) Close() error { return errors.Join(r.Rows.Close(), errSabotage) }
