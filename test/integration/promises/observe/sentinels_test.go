package observe_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceotel"
	"github.com/sqlfence/sqlfence/coverage"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// A failure is a real reason for which a write fails with one of the package's errors.
type failure struct {
	sentinel string // the error's name in the package
	name     string // of the metric
	is       error
	rules    []sqlfence.Rule
	fault    []string // statements that make the write fail
	token    int64    // of the context; 0 for none
	ctx      func(ctx context.Context, b harness.Base) context.Context
	query    string // what fails; empty for an UPDATE of the first book

	exec       bool // a query would fail for another reason
	networked  bool // it happens only on a server, not in SQLite
	tokenless  bool // an Optional table accepts it
	unobserved bool // Observe mode returns the driver's error and reports nothing
}

const updateBook = "UPDATE books SET price = 30 WHERE id = 1"

func failures() []failure {
	fence, ledger := sqlfence.RowFence("fence_token"), sqlfence.Ledger()
	serial := func(n int64) func(context.Context, harness.Base) context.Context {
		return func(ctx context.Context, _ harness.Base) context.Context { return sqlfence.WithSerial(ctx, n) }
	}
	addSerial := "ALTER TABLE books ADD COLUMN serial bigint NOT NULL DEFAULT 7"
	return []failure{
		{sentinel: "ErrStale", name: "stale", is: sqlfence.ErrStale, rules: []sqlfence.Rule{fence}, token: 8},
		{sentinel: "ErrStale", name: "stale", is: sqlfence.ErrStale, rules: []sqlfence.Rule{ledger}, token: 8},
		{sentinel: "ErrNotIssued", name: "not-issued", is: sqlfence.ErrNotIssued, rules: []sqlfence.Rule{ledger}, token: 99},
		{sentinel: "ErrNoFence", name: "no-fence", is: sqlfence.ErrNoFence, rules: []sqlfence.Rule{fence}, tokenless: true},
		{sentinel: "ErrOutOfScope", name: "out-of-scope", is: sqlfence.ErrOutOfScope, rules: []sqlfence.Rule{fence, sqlfence.Key("id")},
			ctx: func(ctx context.Context, _ harness.Base) context.Context {
				return sqlfence.WithFence(ctx, sqlfence.Token{Name: "books/2", Value: 9})
			}},
		{sentinel: "ErrUnguardable", name: "unguardable", is: sqlfence.ErrUnguardable, rules: []sqlfence.Rule{fence}, token: 9,
			query: "UPDATE books SET fence_token = 1"},
		{sentinel: "ErrUnknownName", name: "unknown-name", is: sqlfence.ErrUnknownName, rules: []sqlfence.Rule{ledger}, token: 9,
			fault: []string{"DELETE FROM fencing_tokens"}},
		{sentinel: "ErrConflict", name: "conflict", is: sqlfence.ErrConflict, rules: []sqlfence.Rule{sqlfence.Serial("serial")},
			fault: []string{addSerial}, ctx: serial(3), exec: true},
		{sentinel: "ErrGone", name: "gone", is: sqlfence.ErrGone, rules: []sqlfence.Rule{sqlfence.Serial("serial")},
			fault: []string{addSerial, "DELETE FROM books WHERE id = 1"}, ctx: serial(7), exec: true},
		{sentinel: "ErrNoSerial", name: "no-serial", is: sqlfence.ErrNoSerial, fault: []string{addSerial},
			rules: []sqlfence.Rule{sqlfence.Serial("serial", sqlfence.Required())}},
		{sentinel: "ErrLocked", name: "locked", is: sqlfence.ErrLocked, rules: []sqlfence.Rule{sqlfence.EditLock("editedby", "editedsince", "editedexpiry")},
			fault: []string{"ALTER TABLE books ADD COLUMN editedby integer", "ALTER TABLE books ADD COLUMN editedsince TIME",
				"ALTER TABLE books ADD COLUMN editedexpiry TIME", "UPDATE books SET editedby = 42, editedexpiry = FUTURE WHERE id = 1"},
			ctx: func(ctx context.Context, _ harness.Base) context.Context { return sqlfence.WithEditor(ctx, 43) }},
		{sentinel: "ErrUnknownOutcome", name: "unknown-outcome", is: sqlfence.ErrUnknownOutcome, rules: []sqlfence.Rule{fence}, token: 9,
			networked: true, unobserved: true, exec: true},
		{sentinel: "ErrTokenLimit", name: "token-limit", is: sqlfence.ErrTokenLimit, rules: []sqlfence.Rule{fence}, token: sqlfence.MaxToken + 1},
		{sentinel: "ErrInvalid", name: "invalid", is: sqlfence.ErrInvalid, rules: []sqlfence.Rule{fence}, token: -1},
		{sentinel: "ErrNotSetUp", name: "not-set-up", is: sqlfence.ErrNotSetUp, rules: []sqlfence.Rule{fence}, token: 9,
			fault: []string{"ALTER TABLE books DROP COLUMN fence_token"}},
		{sentinel: "ErrNotSetUp", name: "not-set-up", is: sqlfence.ErrNotSetUp, rules: []sqlfence.Rule{ledger}, token: 9,
			fault: []string{"DROP TABLE fencing_tokens"}},
		{sentinel: "ErrNotSetUp", name: "not-set-up", is: sqlfence.ErrNotSetUp, rules: []sqlfence.Rule{sqlfence.Serial("serial")},
			ctx: serial(7), exec: true},
	}
}

// notOfWrites are the errors that no write returns, each with the reason.
var notOfWrites = map[string]string{
	"ErrStandby": "a standby refuses a write by an error of its own; the reads of tokens and lease return it",
}

// Each of the package's errors that a write can return is reported once in each mode: as one event, one log line, one
// count of the metric and one statement of the coverage.
func TestEveryErrorIsReportedOnce(t *testing.T) {
	covered := make(map[string]bool)
	for _, f := range failures() {
		covered[f.sentinel] = true
	}
	for _, sentinel := range sentinels(t) {
		if !covered[sentinel] && notOfWrites[sentinel] == "" {
			t.Errorf("no write here fails with %s", sentinel)
		}
	}
	for i, f := range failures() {
		t.Run(fmt.Sprint(i, f.sentinel), func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				if f.networked && !b.Networked() {
					t.Skip("no answer can be lost")
				}
				for _, mode := range []struct {
					name    string
					options []sqlfence.Option
					rules   []sqlfence.Rule
					kind    sqlfence.EventKind
					skip    bool
				}{
					{"enforce", nil, nil, sqlfence.Refused, false},
					{"observe", []sqlfence.Option{harness.ObserveMode}, nil, sqlfence.WouldRefuse, f.unobserved},
					{"optional", nil, []sqlfence.Rule{sqlfence.Optional()}, sqlfence.Refused, f.tokenless || !f.fences()},
				} {
					if mode.skip {
						continue
					}
					kind := mode.kind
					if f.networked {
						kind = sqlfence.Unanswered
					}
					t.Run(mode.name, func(t *testing.T) {
						f.run(t, b, append(slices.Clone(f.rules), mode.rules...), kind, mode.options...)
					})
				}
			})
		})
	}
}

// fences reports whether the failure depends on a token, so that the table may be Optional.
func (f failure) fences() bool { return f.token != 0 || f.sentinel == "ErrOutOfScope" }

func (f failure) run(t *testing.T, b harness.Base, rules []sqlfence.Rule, kind sqlfence.EventKind, options ...sqlfence.Option) {
	t.Helper()
	sh := harness.NewShop(t, b)
	sh.Reset(t, 9)
	for _, statement := range f.fault {
		statement = strings.ReplaceAll(statement, "FUTURE", b.Time(time.Now().Add(time.Hour)))
		sh.Exec(t, strings.ReplaceAll(statement, "TIME", b.TimeType()))
	}
	for name, run := range harness.Ways {
		if f.exec && strings.Contains(name, "query") || f.networked && name != "exec" {
			continue
		}
		ctx := t.Context()
		if f.token != 0 {
			ctx = harness.Holding(t, f.token)
		}
		if f.ctx != nil {
			ctx = f.ctx(ctx, b)
		}
		query := f.query
		if query == "" {
			query = updateBook
		}
		source, cut := sh.Source, func() {}
		if f.networked {
			source, cut = cutAnswers(t, source)
		}
		r := newReports(t, b, source, append(options, harness.Books(rules...))...)
		if f.networked {
			if err := run(ctx, r.db, query); err != nil {
				t.Fatal(err)
			}
			r.forget()
			cut()
		}
		err := run(ctx, r.db, query)
		if kind == sqlfence.WouldRefuse {
			if err != nil {
				t.Errorf("%s: observed, it fails: %v", name, err)
			}
		} else if !errors.Is(err, f.is) {
			t.Fatalf("%s: %v, want %s", name, err, f.sentinel)
		}
		r.want(t, name, kind, f.is, f.name, query)
	}
}

// cutAnswers returns a data source name, and a function after whose call the response to the next message is lost.
func cutAnswers(t *testing.T, dsn string) (string, func()) {
	t.Helper()
	var armed, cut atomic.Bool
	through := harness.Relay(t, dsn, func(client, server net.Conn) {
		go harness.Pass(server, client, func(sent []byte) {
			if !bytes.Contains(sent, []byte("-- ping")) && armed.CompareAndSwap(true, false) {
				cut.Store(true)
			}
		})
		harness.Pass(client, server, func([]byte) {
			if cut.CompareAndSwap(true, false) {
				_ = client.Close()
			}
		})
	})
	return through, func() { armed.Store(true) }
}

// Reports are a database with all that it reports about its statements: events, log lines, coverage and metrics.
type reports struct {
	db       *sql.DB
	events   []sqlfence.Event
	log      bytes.Buffer
	coverage *coverage.Collector
	metrics  *metric.ManualReader
}

func newReports(t *testing.T, b harness.Base, source string, options ...sqlfence.Option) *reports {
	t.Helper()
	r := &reports{coverage: coverage.New(), metrics: metric.NewManualReader()}
	telemetry, err := fenceotel.New(fenceotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(r.metrics))))
	if err != nil {
		t.Fatal(err)
	}
	r.db = b.Fenced(t, source, append(options, telemetry.Writes(), r.coverage.Option(),
		sqlfence.WithLogger(slog.New(slog.NewTextHandler(&r.log, nil))),
		sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { r.events = append(r.events, e) },
			sqlfence.Refused, sqlfence.WouldRefuse, sqlfence.Bypassed, sqlfence.Unfenced, sqlfence.Guarded, sqlfence.Passed, sqlfence.Unanswered))...)
	return r
}

// forget clears the reports of earlier statements.
func (r *reports) forget() {
	r.events = nil
	r.log.Reset()
	*r.coverage = *coverage.New()
}

// want checks that the reports are one event, one log line, one count of the metric and one statement of the coverage.
func (r *reports) want(t *testing.T, way string, kind sqlfence.EventKind, is error, name, query string) {
	t.Helper()
	if len(r.events) != 1 || r.events[0].Kind != kind || !errors.Is(r.events[0].Err, is) || r.events[0].Query != query {
		t.Errorf("%s: the observer is told %+v, want one event %v of %q with %v", way, r.events, kind, query, is)
	}
	if lines := strings.Count(r.log.String(), "\n"); lines != 1 || !strings.Contains(r.log.String(), `msg="sqlfence: `+kind.String()+`"`) ||
		!strings.Contains(r.log.String(), "table=books") {
		t.Errorf("%s: the log says %q", way, r.log.String())
	}
	if got := r.counted(t)[kind.String()+" "+name]; got != 1 {
		t.Errorf("%s: the metrics count %v, want one %v %s", way, r.counted(t), kind, name)
	}
	rows := r.coverage.Report().Statements
	if len(rows) != 1 || rows[0].Refused+rows[0].Observed+rows[0].Unanswered != 1 || rows[0].Guarded+rows[0].Passed+rows[0].Unfenced != 0 {
		t.Errorf("%s: coverage has %+v", way, rows)
	}
}

// counted returns the metric of writes, by outcome and error.
func (r *reports) counted(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.metrics.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != "sqlfence.writes" {
				continue
			}
			for _, p := range sum.DataPoints {
				outcome, _ := p.Attributes.Value("sqlfence.outcome")
				failed, _ := p.Attributes.Value("error.type")
				counts[outcome.AsString()+" "+failed.AsString()] += p.Value
			}
		}
	}
	return counts
}

// sentinels are the errors that the package exports.
func sentinels(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name != "sqlfence" {
			continue
		}
		for _, d := range f.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, s := range vars.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	if len(names) < 15 {
		t.Fatalf("the package has the errors %v", names)
	}
	return names
}

// A connection that verify.OnConnect refuses is reported like a write, for each try.
func TestRefusedConnectionIsReported(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		sh := harness.NewShop(t, b)
		sh.Exec(t, "ALTER TABLE books DROP COLUMN fence_token")
		r := newReports(t, b, sh.Source, verify.OnConnect(), harness.Books(sqlfence.RowFence("fence_token")))
		if _, err := r.db.ExecContext(harness.Holding(t, 9), updateBook); !errors.Is(err, sqlfence.ErrNotSetUp) {
			t.Fatal(err)
		}
		if len(r.events) != 1 || r.events[0].Kind != sqlfence.Refused || r.events[0].Query != "" {
			t.Errorf("the observer is told %+v", r.events)
		}
		if got := r.counted(t)["refused not-set-up"]; got != 1 {
			t.Errorf("the metrics count %v", r.counted(t))
		}
		if rows := r.coverage.Report().Statements; len(rows) != 1 || rows[0].Refused != 1 {
			t.Errorf("coverage has %+v", rows)
		}
		if !strings.Contains(r.log.String(), "not set up") {
			t.Errorf("the log says %q", r.log.String())
		}
	})
}

// If the COMMIT of a transaction with guarded writes gets no response, this is reported.
func TestUnansweredCommitIsReported(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("no answer can be lost")
		}
		sh := harness.NewShop(t, b)
		sh.Reset(t, 9)
		source, cut := cutAnswers(t, sh.Source)
		r := newReports(t, b, source, harness.Books(sqlfence.RowFence("fence_token")))
		tx, err := r.db.BeginTx(harness.Holding(t, 9), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), updateBook); err != nil {
			t.Fatal(err)
		}
		r.forget()
		cut()
		if err := tx.Commit(); !errors.Is(err, sqlfence.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		if len(r.events) != 1 || r.events[0].Kind != sqlfence.Unanswered || r.events[0].Query != "COMMIT" {
			t.Errorf("the observer is told %+v", r.events)
		}
		if rows := r.coverage.Report().Statements; len(rows) != 1 || rows[0].Unanswered != 1 {
			t.Errorf("coverage has %+v", rows)
		}
	})
}
