package adopting_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/XSAM/otelsql"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// TestOtelsql compares the spans of otelsql wrapped around sqlfence with the spans of sqlfence wrapped around otelsql.

var registered atomic.Int64

func TestOtelsql(t *testing.T) {
	table := harness.Books(sqlfence.RowFence("fence_token"))
	refused := "TRUNCATE books"
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		stale := b.Text(t, harness.SetPrice)
		sh := harness.NewShop(t, b)
		sh.Reset(t, 5)
		baseDriver, dsn := sh.Plain.Driver(), sh.Source
		name := fmt.Sprintf("fenced-%s-%d", b.Name, registered.Add(1))

		t.Run("outside", func(t *testing.T) {
			seen := new(recorder)
			spans := otelsql.WithTracerProvider(seen)

			var db *sql.DB
			open := func() (err error) {
				if err = sqlfence.Register(name, baseDriver, table); err != nil {
					return err
				}
				traced, err := otelsql.Register(name, spans)
				if err != nil {
					return err
				}
				db, err = sql.Open(traced, dsn)
				return err
			}

			err := open()
			seen.write(t, harness.CloseAtEnd(t, db, err), stale, refused)
			seen.want(t, stale+" [error: sqlfence: stale", refused+" [error: sqlfence: ")
		})
		t.Run("inside", func(t *testing.T) {
			seen := new(recorder)
			spans := otelsql.WithTracerProvider(seen)

			traced, err := otelsql.Register(b.DriverName, spans)
			if err != nil {
				t.Fatal(err)
			}
			db, err := sqlfence.Open(traced, dsn, table)

			seen.write(t, harness.CloseAtEnd(t, db, err), stale, refused)
			isVersion := func(span string) bool { return strings.HasPrefix(span, "SELECT @@version") } // on MySQL and MariaDB
			asked := seen.spans
			if isVersion(asked[0]) {
				asked = asked[1:]
			}
			if !strings.Contains(asked[0], ":server:") {
				t.Errorf("the server isn't asked first: %q", seen.spans)
			}
			seen.spans = slices.DeleteFunc(seen.spans, func(span string) bool { // queries on connect
				return isVersion(span) || strings.Contains(span, ":server:") || strings.HasPrefix(span, "SHOW VARIABLES") ||
					strings.Contains(span, "information_schema.")
			})
			// The spans must have the guarded SQL and the database's error. A statement that sqlfence refuses has no
			// span.
			seen.want(t, "sqlfence:nonce:stale:")
			for _, span := range seen.spans { // a single span, or a span for Prepare and a span for Exec
				if !strings.Contains(span, "fence_token") {
					t.Errorf("the spans are %q", seen.spans)
				}
			}
		})
	})
}

// A recorder records the SQL and the error of each statement's span.
type recorder struct {
	noop.TracerProvider
	spans []string
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return &tracer{to: r} }

// write sends a write with a stale token, and a statement that can't be guarded.
func (r *recorder) write(t *testing.T, db *sql.DB, stale, refused string) {
	t.Helper()
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.spans = nil
	_, err := db.ExecContext(harness.Holding(t, 4), stale, 20, 1)
	harness.WantStale(t, err, 4, 5)
	_, err = db.ExecContext(harness.Holding(t, 6), refused)
	harness.WantError(t, err, sqlfence.ErrUnguardable)
}

func (r *recorder) want(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(strings.Join(r.spans, "\n"), text) {
			t.Errorf("no span has %q:\n%s", text, strings.Join(r.spans, "\n"))
		}
	}
}

type tracer struct {
	noop.Tracer
	to *recorder
}

func (tr *tracer) Start(ctx context.Context, _ string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &span{to: tr.to}
	config := trace.NewSpanStartConfig(opts...)
	s.SetAttributes(config.Attributes()...)
	return ctx, s
}

type span struct {
	noop.Span
	to           *recorder
	text, failed string
}

func (s *span) IsRecording() bool { return true }

func (s *span) SetAttributes(attributes ...attribute.KeyValue) {
	for _, a := range attributes {
		if a.Key == "db.statement" || a.Key == "db.query.text" {
			s.text = a.Value.AsString()
		}
	}
}

func (s *span) SetStatus(code codes.Code, description string) {
	if code == codes.Error && s.failed == "" {
		s.failed = " [error: " + description + "]"
	}
}

func (s *span) RecordError(err error, _ ...trace.EventOption) {
	s.failed = " [error: " + err.Error() + "]"
}

func (s *span) End(...trace.SpanEndOption) {
	if s.text != "" {
		s.to.spans = append(s.to.spans, s.text+s.failed)
	}
}
