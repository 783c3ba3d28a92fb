package tokens

import (
	"maps"
	"strings"
	"testing"
)

// The session variable's value is accepted only if it has exactly one token for each name.
func TestReadEach(t *testing.T) {
	names := []string{"books", "pens"}
	for _, test := range []struct {
		left string
		want map[string]int64
		err  string
	}{
		{" 1:7 2:3", map[string]int64{"books": 7, "pens": 3}, ""},
		{" 2:3 1:7", map[string]int64{"books": 7, "pens": 3}, ""},
		{"", nil, "tokens of 0 names, want 2"},
		{" 1:7", nil, "tokens of 1 names, want 2"},
		{" 1:7 1:8 2:3", nil, "comes twice"},
		{" 1:7 3:8", nil, "no such name"},
		{" 0:7 1:8", nil, "no such name"},
		{" 1:7 2", nil, "invalid syntax"},
		{" 1:7 x:8", nil, "invalid syntax"},
		{" 1:7 2:1e3", nil, "invalid syntax"},
	} {
		got, err := readEach(test.left, names)
		if !maps.Equal(got, test.want) || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %v, %v; want %v, %q", test.left, got, err, test.want, test.err)
		}
	}
}

// A name may look like a piece of a statement.
func TestNamesInBracesAreAddedAsTheyAre(t *testing.T) {
	if got, want := addMySQL("INSERT", []string{"{books}"}, ""), "INSERT INTO fencing_tokens (name, token) VALUES (_utf8mb4'{books}', 0)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
