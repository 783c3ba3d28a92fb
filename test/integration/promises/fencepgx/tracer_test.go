package fencepgx_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// spans records the spans that a tracer has started.
type spans struct {
	noop.TracerProvider
	mu  sync.Mutex
	all []*span
}

type span struct {
	noop.Span
	to     *spans
	texts  string // of the spans' attributes
	failed bool
}

type otelTracer struct {
	noop.Tracer
	to *spans
}

func (s *spans) Tracer(string, ...trace.TracerOption) trace.Tracer { return otelTracer{to: s} }

func (o otelTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	made := &span{to: o.to, texts: name}
	config := trace.NewSpanStartConfig(opts...)
	for _, a := range config.Attributes() {
		made.texts += "\n" + a.Value.String()
	}
	o.to.mu.Lock()
	defer o.to.mu.Unlock()
	o.to.all = append(o.to.all, made)
	return trace.ContextWithSpan(ctx, made), made
}

func (s *span) IsRecording() bool { return true }

func (s *span) SetStatus(code codes.Code, _ string) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	s.failed = s.failed || code == codes.Error
}

// of returns how many spans have a text, and how many of these have failed. It removes all spans.
func (s *spans) of(text string) (n, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if strings.Contains(one.texts, text) {
			n++
			if one.failed {
				failed++
			}
		}
	}
	s.all = nil
	return n, failed
}

// The pool's tracer sees the guarded SQL, and a refusal as the server's error. It doesn't see a statement that fencepgx
// refuses before sending.
func TestTracer(t *testing.T) {
	seen := new(spans)
	s := newShopBy(t, sqlfence.RowFence("fence_token"), func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(seen))
	})
	const query = "UPDATE books SET price = $1 WHERE id = $2"
	in := func(ctx context.Context) context.Context { return trace.ContextWithSpan(ctx, &span{to: seen}) } // otelpgx needs one
	exec := func(ctx context.Context) error {
		_, err := s.db.Exec(in(ctx), query, 30, 1)
		return err
	}
	batch := func(ctx context.Context) error {
		var b pgx.Batch
		b.Queue(query, 30, 1)
		return s.db.SendBatch(in(ctx), &b).Close()
	}
	for name, write := range map[string]func(context.Context) error{"exec": exec, "batch": batch} {
		if err := write(harness.Holding(t, 9)); err != nil { // pgx prepares it
			t.Fatal(err)
		}
		seen.of("")
		if err := write(harness.Holding(t, 9)); err != nil {
			t.Fatal(err)
		}
		if n, failed := seen.of(`"fence_token"`); n == 0 || failed != 0 {
			t.Errorf("%s: %d spans have the guard, %d failed", name, n, failed)
		}
		harness.WantStale(t, write(harness.Holding(t, 8)), 8, 9)
		if n, failed := seen.of("UPDATE books"); n == 0 || failed == 0 {
			t.Errorf("%s: a refusal is in %d spans, %d failed", name, n, failed)
		}
		harness.WantOnly(t, write(t.Context()), sqlfence.ErrNoFence)
		if n, _ := seen.of("UPDATE books"); n != 0 {
			t.Errorf("%s: %d spans of what wasn't sent", name, n)
		}
	}
}
