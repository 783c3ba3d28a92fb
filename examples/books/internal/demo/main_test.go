package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // besides the driver that the build tags choose

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/examples/internal/servers"
	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

// forEachDatabase runs a test on SQLite through every driver that this build
// has, and on PostgreSQL and MariaDB where the environment names one.
func forEachDatabase(t *testing.T, test func(t *testing.T, fresh func(context.Context) (*source, error))) {
	drivers := []string{sqlite.Driver}
	if sqlite.Driver != "sqlite" {
		drivers = append(drivers, "sqlite")
	}
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			test(t, func(context.Context) (*source, error) { return newSQLite(driver) })
		})
	}
	t.Run("pgx", func(t *testing.T) {
		dsn := servers.PostgresURL(t)
		test(t, func(ctx context.Context) (*source, error) { return newPostgres(ctx, dsn) })
	})
	t.Run("mysql", func(t *testing.T) {
		url := servers.MySQLURL(t)
		test(t, func(ctx context.Context) (*source, error) { return newMySQL(ctx, url) })
	})
}

func newProgram(fresh func(context.Context) (*source, error), guarded opener) *program {
	return &program{
		fresh:    fresh,
		guarded:  guarded,
		clients:  newClients(1000, 1),
		progress: func(int, string) func() { return func() {} },
	}
}

// The blog's acceptance test: 1,000 delayed clients, and the final price is that
// of the highest token that succeeded.
func TestBooksKeepThePriceOfTheHighestToken(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, fresh func(context.Context) (*source, error)) {
		p := newProgram(fresh, fenced)
		var out bytes.Buffer
		if err := p.run(t.Context(), &out); err != nil {
			t.Errorf("run: %v", err)
		}
		t.Logf("the report:\n%s", &out)
		for _, want := range []string{"wants 20: ErrStale", "ends with the price 20", "OK: "} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the report lacks %q", want)
			}
		}
		if n := strings.Count(out.String(), "\n"); n > 40 {
			t.Errorf("the report has %d lines, at most 40 are readable", n)
		}
	})
}

// Every client of the fenced run was either accepted or refused, and some were
// refused: otherwise the run has shown nothing.
func TestStressRefuses(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, fresh func(context.Context) (*source, error)) {
		p := newProgram(fresh, fenced)
		r, err := p.stress(t.Context(), fenced, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.check(); err != nil {
			t.Error(err)
		}
		if len(r.accepted)+r.refused != len(p.clients) || r.refused == 0 {
			t.Errorf("%d accepted, %d refused, want %d together and some refused", len(r.accepted), r.refused, len(p.clients))
		}
		if newest := r.newest(); r.final.fence != newest.token {
			t.Errorf("the row's mark is %d, want %d, the highest token that succeeded", r.final.fence, newest.token)
		}
	})
}

// The negative control: with the bare driver in the place of the fenced one the
// program has to fail. The paused holder's steps are in a fixed order, so this
// doesn't hang on luck.
func TestFailsWithoutFence(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, fresh func(context.Context) (*source, error)) {
		p := newProgram(fresh, bare)
		p.clients = p.clients[:1] // no second client to race with
		var out bytes.Buffer
		if err := p.run(t.Context(), &out); !errors.Is(err, errStaleLanded) {
			t.Errorf("run on the bare driver: got %v, want %v; the report:\n%s", err, errStaleLanded, &out)
		}
	})
}

// The negative control of the stress check: two clients, ordered by hand.
func TestCheckSeesStaleWrite(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, fresh func(context.Context) (*source, error)) {
		for _, test := range []struct {
			name string
			open opener
			want error
		}{
			{"fenced", fenced, nil},
			{"bare", bare, errStaleLanded},
		} {
			t.Run(test.name, func(t *testing.T) {
				r, err := lateWriter(t.Context(), fresh, test.open)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.check(); !errors.Is(err, test.want) {
					t.Errorf("check: got %v, want %v", err, test.want)
				}
			})
		}
	})
}

// lateWriter has the client with the lower token write after the other one.
func lateWriter(ctx context.Context, fresh func(context.Context) (*source, error), open opener) (*result, error) {
	var r result
	err := withService(ctx, fresh, open, func(s *service) error {
		first, err := s.takeToken(ctx)
		if err != nil {
			return err
		}
		second, err := s.takeToken(ctx)
		if err != nil {
			return err
		}
		for _, token := range []sqlfence.Token{second, first} {
			r.add(s.setPrice(ctx, token, token.Value))
		}
		r.final, err = s.book(ctx)
		return err
	})
	return &r, err
}

// check must also find faults that the order of the writes doesn't show.
func TestCheckFindsEachDefect(t *testing.T) {
	accepted := []write{{token: 1, price: 10, order: 1}, {token: 3, price: 30, order: 2}}
	for _, test := range []struct {
		name string
		r    result
		ok   bool
	}{
		{"good", result{accepted: accepted, refused: 1, final: book{price: 30, writes: 2}}, true},
		{"an error", result{accepted: accepted, errs: []error{errors.New("lost connection")}, final: book{price: 30, writes: 2}}, false},
		{"refused, but landed", result{accepted: accepted, refused: 1, final: book{price: 30, writes: 3}}, false},
		{"lost update", result{accepted: accepted, final: book{price: 10, writes: 2}}, false},
	} {
		if err := test.r.check(); (err == nil) != test.ok {
			t.Errorf("%s: check: %v, want ok %v", test.name, err, test.ok)
		}
	}
}
