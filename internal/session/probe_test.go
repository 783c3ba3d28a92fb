package session

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/dberr"
)

// A state is a PostgreSQL error: the code, a blank, and the message.
type state string

func (e state) Error() string    { return string(e) }
func (e state) SQLState() string { return string(e[:5]) }

// A strange server doesn't throw a guard's error correctly.
type strange struct {
	canary, version, savepoint error
	asked                      []string
}

func (s *strange) Query(_ context.Context, query string) ([][]string, error) {
	s.asked = append(s.asked, "version")
	return [][]string{{"Strange 1"}}, s.version
}

func (s *strange) Exec(_ context.Context, query string) error {
	switch {
	case IsCanary(query):
		s.asked = append(s.asked, "canary")
		return s.canary
	case strings.HasPrefix(query, "SAVEPOINT"):
		s.asked = append(s.asked, "savepoint")
		return s.savepoint
	}
	return nil
}

// A server that doesn't throw the guard's error is refused by name. A server that doesn't respond isn't refused.
func TestNoAnswerIsNoRefusal(t *testing.T) {
	const (
		standby = state("0A000 cannot use serializable mode in a hot standby")
		missing = state("42883 function int8le does not exist")
		unknown = state("42883 function version does not exist")
		ended   = state("08P01 the name of a statement that couldn't be prepared")
		noTx    = state(dberr.NoActiveTransaction)
	)
	for _, test := range []struct {
		name    string
		server  strange
		inTx    bool
		refused bool
		version string
		asked   string
	}{
		{"raises nothing", strange{}, false, true, "Strange 1", "canary savepoint canary version"},
		{"raises nothing, and has no version", strange{version: unknown}, false, true, "", "canary savepoint canary version"},
		{"raises another", strange{canary: missing}, false, true, "Strange 1", "canary version"},
		{"raises another, in a transaction", strange{canary: missing}, true, true, "Strange 1", "savepoint canary savepoint version"},
		{"raises another, in a transaction that has ended", strange{canary: missing, savepoint: noTx}, true, true, "Strange 1", "savepoint canary savepoint version"},
		{"raises another, and has no version", strange{canary: missing, version: unknown}, false, true, "", "canary version"},
		{"raises another, and has no version, in a transaction", strange{canary: missing, version: unknown}, true, true, "", "savepoint canary savepoint version"},
		{"answers nothing", strange{canary: standby, version: standby}, false, false, "", "canary version"},
		{"answers nothing in a transaction", strange{canary: standby, version: standby}, true, false, "", "savepoint canary savepoint version"},
		{"answers nothing, and the transaction has ended", strange{canary: standby, version: standby, savepoint: noTx}, true, false, "", "savepoint canary savepoint version"},
		{"ends the session", strange{canary: standby, version: ended}, false, false, "", "canary version"},
	} {
		s := New(Postgres, new(Database), new(Wants))
		err := s.Know(t.Context(), &test.server, Moment{InTx: test.inTx})
		var refusal *Refusal
		switch refused := errors.As(err, &refusal); {
		case err == nil || refused != test.refused:
			t.Errorf("%s: %v, want a refusal: %v", test.name, err, test.refused)
		case refused && refusal.Version != test.version:
			t.Errorf("%s: the version %q, want %q", test.name, refusal.Version, test.version)
		case test.server.canary != nil && !errors.Is(err, test.server.canary):
			t.Errorf("%s: %v, without what the server has answered", test.name, err)
		}
		if asked := strings.Join(test.server.asked, " "); asked != test.asked {
			t.Errorf("%s: asked %s, want %s", test.name, asked, test.asked)
		}
		if s.throws {
			t.Errorf("%s: it is proven", test.name)
		}
	}
}
