package rowlock

import (
	"errors"
	"testing"

	"github.com/sqlfence/sqlfence"
)

func TestExplain(t *testing.T) {
	m := &Manager{dialect: sqlite()}
	err := errors.New("no such table: rowlocks")
	var setup *sqlfence.SetupError
	if got := m.explain(t.Context(), err); !errors.As(got, &setup) || !errors.Is(got, err) || setup.Missing != "table rowlocks" || setup.SQL == "" {
		t.Errorf("of %v: %v", err, got)
	}
	err = errors.New("no such table: others")
	if got := m.explain(t.Context(), err); !errors.Is(got, err) || errors.Is(got, sqlfence.ErrNotSetUp) {
		t.Errorf("of %v: %v", err, got)
	}
	if err = nil; m.explain(t.Context(), err) != nil {
		t.Error("nil is an error")
	}
}
