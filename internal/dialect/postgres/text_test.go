package postgres

import (
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

func TestPostgresPieces(t *testing.T) {
	got, _ := sqltext.Render(Text, "{durable}|{turn {name}}|{seen {name}}", sqltext.Fragments{"name": sqltext.Raw("$1::text")})
	want := Qualified(strings.Join([]string{durable, Text.AdvisoryLock("$1::text", false), checksSnapshot("$1::text")}, "|"))
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The error text of OldSnapshot is recognised inside any message.
func TestSeenRaisesWhatSeenIs(t *testing.T) {
	text := checksSnapshot("$1")
	at := strings.Index(text, "'sqlfence:")
	if at < 0 || strings.Count(text, "$1") != 2 {
		t.Fatalf("Seen is %s", text)
	}
	raised, _, _ := strings.Cut(text[at+1:], "'")
	for err, want := range map[error]bool{
		raisedError{raised + "books", "22P02"}: true,
		raisedError{raised + "books", "22P03"}: false,
		raisedError{"7 is no number", "22P02"}: false,
	} {
		if got := sqltext.IsThrown(Text, err, sqltext.OldSnapshot); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

type raisedError struct{ raised, state string }

func (e raisedError) Error() string    { return "invalid input syntax: \"" + e.raised + "\"" }
func (e raisedError) SQLState() string { return e.state }
