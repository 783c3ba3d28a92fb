package lease

import (
	"errors"
	"testing"
)

type stateError string

func (e stateError) Error() string    { return "state " + string(e) }
func (e stateError) SQLState() string { return string(e) }

func TestMayHaveCommitted(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{errors.New("EOF"), true},
		{stateError("08P01"), true}, // a pooler whose connection broke
		{stateError("57P01"), true},
		{stateError("40003"), true},
		{stateError("40001"), false},
		{stateError("42P01"), false},
		{stateError("57014"), false},
		{errors.New("sql: database is closed"), false},
	} {
		if got := mayHaveCommitted(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
