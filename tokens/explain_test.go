package tokens

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
)

func TestExplain(t *testing.T) {
	s := &Store{dialect: sqlite(), options: new(config)}
	err := errors.New("no such table: fencing_tokens")
	var setup *sqlfence.SetupError
	if got := s.explain(t.Context(), err); !errors.As(got, &setup) || !errors.Is(got, err) || setup.Missing != "table fencing_tokens" || setup.SQL == "" {
		t.Errorf("of %v: %v", err, got)
	}
	err = errors.New("no such table: others")
	if got := s.explain(t.Context(), err); !errors.Is(got, err) || errors.Is(got, sqlfence.ErrNotSetUp) {
		t.Errorf("of %v: %v", err, got)
	}
	if err = nil; s.explain(t.Context(), err) != nil {
		t.Error("nil is an error")
	}
}
