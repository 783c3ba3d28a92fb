package dberr

import (
	"errors"
	"testing"
)

func TestMisfits(t *testing.T) {
	for _, test := range []struct {
		err            error
		misfit, byRule bool
	}{
		{nil, false, false},
		{errors.New("broken"), false, false},
		{errors.New("table books has 4 columns but 5 values were supplied"), true, false},
		{errors.New("5 values for 4 columns"), false, false}, // it names columns
		{stateError("42601"), true, false},
		{stateError("42804"), true, false},
		{stateError("428C9"), true, false},
		{stateError("42703"), false, false},
		{textError{stateError("0A000"), "WITH kann hier nicht verwendet werden"}, false, true},
		{textError{stateError("0A000"), "with"}, false, false},
		{textError{stateError("42601"), "WITH"}, true, false},
	} {
		if IsMisfit(test.err) != test.misfit || IsWithByRule(test.err) != test.byRule {
			t.Errorf("%v: misfit %v, by a rule %v", test.err, !test.misfit, !test.byRule)
		}
	}
}

type textError struct {
	stateError
	text string
}

func (e textError) Error() string { return e.text }
