package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// The refusal of a missing token lists the context's tokens. Under a Bypass without a reason the error states that the
// Bypass has no effect.
func TestRefusalsSayWhatTheContextHas(t *testing.T) {
	db := open(t, &fakedb.Recorder{}, sqlfence.WithTable("customers", fenced))
	orders := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "orders", Value: 7})
	many := sqlfence.WithFence(orders, sqlfence.Token{Name: "a", Value: 1}, sqlfence.Token{Name: "b", Value: 1}, sqlfence.Token{Name: "c", Value: 1})
	named := func(name string) context.Context {
		return sqlfence.WithFence(orders, sqlfence.Token{Name: name, Value: 7})
	}
	for _, test := range []struct {
		ctx     context.Context
		has     []string
		without string
	}{
		{named("Customers"), []string{`it carries "Customers": did you mean "customers"?`}, "Resource"},
		{named("custmers/7"), []string{`it carries "custmers/7": did you mean "customers/7"?`}, "Resource"},
		{named("custmer"), []string{`it carries "orders", "custmer"`, "Resource"}, "did you mean"},
		{t.Context(), []string{`no token called "customers"`}, "Resource"},
		{orders, []string{`no token called "customers"`, `it carries "orders"`, "Resource"}, "Bypass"},
		{many, []string{`it carries "orders", "a", "b", …:`}, `"c"`},
		{sqlfence.Bypass(t.Context(), ""), []string{"Bypass has an empty reason"}, ""},
	} {
		for way, run := range runs {
			err := run(test.ctx, db, "UPDATE customers SET price = 1")
			if !errors.Is(err, sqlfence.ErrNoFence) {
				t.Fatalf("%s: %v", way, err)
			}
			for _, part := range test.has {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v, want %q", way, err, part)
				}
			}
			if test.without != "" && strings.Contains(err.Error(), test.without) {
				t.Errorf("%s: %v, with %q", way, err, test.without)
			}
		}
	}
}

// By default the log gets the writes that Observe lets through, unless an observer or logger does.
func TestObserveIsHeard(t *testing.T) {
	var text bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	ignore := func(context.Context, sqlfence.Event) {}
	for name, test := range map[string]struct {
		opts []sqlfence.Option
		want bool
	}{
		"alone":                       {[]sqlfence.Option{sqlfence.WithMode(sqlfence.Observe)}, true},
		"a table's own mode":          {nil, true},
		"an observer of other events": {[]sqlfence.Option{sqlfence.WithObserver(ignore, sqlfence.Bypassed)}, true},
		"an observer":                 {[]sqlfence.Option{sqlfence.WithObserver(ignore)}, false},
		"a logger":                    {[]sqlfence.Option{sqlfence.WithLogger(slog.New(slog.DiscardHandler))}, false},
	} {
		text.Reset()
		db := open(t, &fakedb.Recorder{}, append(test.opts, sqlfence.WithTable("books", fenced, sqlfence.InMode(sqlfence.Observe)))...)
		if _, err := db.ExecContext(t.Context(), "UPDATE books SET price = 1"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "a test"), "UPDATE books SET price = 1"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), "would refuse"); got != map[bool]int{true: 1}[test.want] || strings.Contains(text.String(), "bypass") {
			t.Errorf("%s: logged %q", name, text.String())
		}
	}
	text.Reset()
	db := open(t, &fakedb.Recorder{}, sqlfence.WithTable("books", fenced))
	if _, err := db.ExecContext(t.Context(), "UPDATE books SET price = 1"); !errors.Is(err, sqlfence.ErrNoFence) || text.Len() > 0 {
		t.Errorf("where it is enforced: %v, logged %q", err, text.String())
	}
}
