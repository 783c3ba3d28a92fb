package sqlfence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

func token(name string, value int64) sqlfence.Token { return sqlfence.Token{Name: name, Value: value} }

// held lists the context's tokens of the names, as "name=value".
func held(ctx context.Context, names ...string) string {
	var list []string
	for _, name := range names {
		if t, ok := sqlfence.FenceFrom(ctx, name); ok {
			list = append(list, fmt.Sprintf("%s=%d", t.Name, t.Value))
		} else if t != (sqlfence.Token{}) {
			list = append(list, fmt.Sprintf("%s: not found, yet %v", name, t))
		}
	}
	return strings.Join(list, " ")
}

func TestWithFence(t *testing.T) {
	none := t.Context()
	tests := []struct {
		name string
		ctx  context.Context
		want string
	}{
		{"none", none, ""},
		{"no tokens", sqlfence.WithFence(none), ""},
		{"one", sqlfence.WithFence(none, token("a", 1)), "a=1"},
		{"two at once", sqlfence.WithFence(none, token("a", 1), token("b", 2)), "a=1 b=2"},
		{"two by turns", sqlfence.WithFence(sqlfence.WithFence(none, token("b", 2)), token("a", 1)), "a=1 b=2"},
		{"replaced", sqlfence.WithFence(sqlfence.WithFence(none, token("a", 1), token("b", 2)), token("a", 3)), "a=3 b=2"},
		{"replaced by a lower one", sqlfence.WithFence(sqlfence.WithFence(none, token("a", 3)), token("a", 1)), "a=1"},
		{"the last of one call", sqlfence.WithFence(none, token("a", 1), token("a", 2)), "a=2"},
		{"names are exact", sqlfence.WithFence(none, token("A", 1), token("a ", 2), token("a/1", 3)), ""},
		{"nothing added keeps all", sqlfence.WithFence(sqlfence.WithFence(none, token("a", 1))), "a=1"},
		{"a derived context", context.WithoutCancel(sqlfence.WithFence(none, token("a", 1))), "a=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := held(tt.ctx, "a", "b"); got != tt.want {
				t.Errorf("the context carries %q, want %q", got, tt.want)
			}
		})
	}
}

// Contexts of one parent share no memory: neither a sibling's tokens nor a change of the passed slice changes another
// context.
func TestWithFenceDoesNotAlias(t *testing.T) {
	list := make([]sqlfence.Token, 1, 8)
	list[0] = token("a", 1)
	parent := sqlfence.WithFence(t.Context(), list...)
	list[0] = token("a", 99)
	_ = append(list, token("b", 99))

	left := sqlfence.WithFence(parent, token("b", 2))
	right := sqlfence.WithFence(parent, token("b", 3), token("c", 4))
	replaced := sqlfence.WithFence(parent, token("a", 5))
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want string
	}{
		{"parent", parent, "a=1"},
		{"left", left, "a=1 b=2"},
		{"right", right, "a=1 b=3 c=4"},
		{"replaced", replaced, "a=5"},
	} {
		if got := held(tt.ctx, "a", "b", "c"); got != tt.want {
			t.Errorf("%s carries %q, want %q", tt.name, got, tt.want)
		}
	}
}

// WithFence accepts any token. A write that needs an invalid token is refused; the token is never ignored.
func TestInvalidTokenIsKept(t *testing.T) {
	for _, tt := range []struct {
		token sqlfence.Token
		want  error
	}{
		{token("books", 0), sqlfence.ErrInvalid},
		{token("books", -1), sqlfence.ErrInvalid},
		{token("books", sqlfence.MaxToken+1), sqlfence.ErrTokenLimit},
	} {
		ctx := sqlfence.WithFence(t.Context(), token("books", 7), tt.token)
		if got, ok := sqlfence.FenceFrom(ctx, "books"); !ok || got != tt.token {
			t.Errorf("FenceFrom = %v, %v; want %v", got, ok, tt.token)
		}
		for _, rules := range [][]sqlfence.Rule{
			{sqlfence.RowFence("fence")},
			{sqlfence.RowFence("fence"), sqlfence.Optional()},
		} {
			base := &fakedb.Recorder{}
			db := open(t, base, sqlfence.WithTable("books", rules...))
			if _, err := db.ExecContext(ctx, "UPDATE books SET price = 1"); !errors.Is(err, tt.want) || errors.Is(err, sqlfence.ErrNoFence) != (tt.want == sqlfence.ErrInvalid) {
				t.Errorf("%v: %v, want %v", tt.token, err, tt.want)
			}
			base.WantSent(t)
		}
	}
}

// An empty reason bypasses nothing, also inside of a bypass.
func TestBypassNeedsAReason(t *testing.T) {
	const write = "UPDATE books SET price = 1"
	bypass := sqlfence.Bypass(t.Context(), "repair")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		sent []string
	}{
		{"with", bypass, []string{write}},
		{"derived", sqlfence.WithFence(bypass, token("x", 1)), []string{write}},
		{"without", sqlfence.Bypass(t.Context(), ""), nil},
		{"taken back", sqlfence.Bypass(bypass, ""), nil},
	} {
		base := &fakedb.Recorder{}
		db := open(t, base, sqlfence.WithTable("books", sqlfence.RowFence("fence")))
		_, err := db.ExecContext(tt.ctx, write)
		if want := tt.sent == nil; errors.Is(err, sqlfence.ErrNoFence) != want {
			t.Errorf("%s: %v", tt.name, err)
		}
		base.WantSent(t, tt.sent...)
	}
}

// FencesFrom returns a copy.
func TestFencesFrom(t *testing.T) {
	books, pens := sqlfence.Token{Name: "books", Value: 7}, sqlfence.Token{Name: "pens", Value: 9}
	ctx := sqlfence.WithFence(sqlfence.WithFence(t.Context(), books), pens)
	got := sqlfence.FencesFrom(ctx)
	if !slices.Equal(got, []sqlfence.Token{books, pens}) {
		t.Errorf("%v", got)
	}
	got[0].Value = 8
	if kept, _ := sqlfence.FenceFrom(ctx, "books"); kept != books {
		t.Errorf("the context's token has become %v", kept)
	}
	if got := sqlfence.FencesFrom(t.Context()); got != nil {
		t.Errorf("%v", got)
	}
}
