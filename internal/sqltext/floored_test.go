package sqltext

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

type stateError string

func (e stateError) Error() string    { return "state " + string(e) }
func (e stateError) SQLState() string { return string(e) }

// A server has the errors of statements with the floor, of statements without the floor, and of the timeline query.
type server struct{ full, lower, timeline error }

func (s server) send(sent *[]string) func(text string) error {
	return func(text string) error {
		switch {
		case strings.HasPrefix(text, "SELECT (SELECT pg_catalog.int8pl"):
			*sent = append(*sent, "timeline")
			return s.timeline
		case strings.Contains(text, Whole(Postgres, LowerBound(Postgres))):
			*sent = append(*sent, "full")
			return s.full
		}
		*sent = append(*sent, "lower")
		return s.lower
	}
}

func TestTimelinesSend(t *testing.T) {
	const undefined, privilege, unsupported = stateError("42883"), stateError("42501"), stateError("0A000")
	other := errors.New("broken")
	f := NewBounded(Postgres, "SELECT {floor}")
	for _, test := range []struct {
		name   string
		server server
		want   error
		sent   []string
		found  bool
		next   string // what the next statement is, of a server that is well
	}{
		{"told", server{}, nil, []string{"full"}, false, "full"},
		{"undefined", server{undefined, nil, undefined}, nil, []string{"full", "timeline", "lower"}, true, "lower"},
		{"no privilege", server{privilege, nil, privilege}, nil, []string{"full", "timeline", "lower"}, true, "lower"},
		{"not supported", server{unsupported, nil, unsupported}, nil, []string{"full", "timeline", "lower"}, true, "lower"},
		{"the fallback fails too", server{privilege, other, privilege}, other, []string{"full", "timeline", "lower"}, false, "full"},
		{"no privilege on the table", server{privilege, privilege, nil}, privilege, []string{"full", "timeline"}, false, "full"},
		{"a cached plan", server{unsupported, nil, nil}, unsupported, []string{"full", "timeline"}, false, "full"},
		{"no answer for the timeline", server{undefined, nil, other}, undefined, []string{"full", "timeline"}, false, "full"},
		{"another error", server{other, nil, undefined}, other, []string{"full"}, false, "full"},
	} {
		var timelines Timelines
		var sent []string
		send := test.server.send(&sent)
		found, err := timelines.Send(f, send, send)
		if found != test.found || err != test.want || !slices.Equal(sent, test.sent) {
			t.Errorf("%s: %v, %v, sent %q; want %v, %v, %q", test.name, found, err, sent, test.found, test.want, test.sent)
		}
		sent = nil
		send = server{}.send(&sent)
		if found, err := timelines.Send(f, send, send); found || err != nil || !slices.Equal(sent, []string{test.next}) {
			t.Errorf("%s, then: %v, %v, sent %q; want %q", test.name, found, err, sent, test.next)
		}
	}
}

func TestWithoutTimelinesNothingIsAsked(t *testing.T) {
	var timelines Timelines
	var sent []string
	send := server{lower: stateError("42501")}.send(&sent)
	if found, err := timelines.Send(NewBounded(SQLite, "SELECT {floor}"), send, send); found || err == nil || !slices.Equal(sent, []string{"lower"}) {
		t.Errorf("%v, %v, sent %q", found, err, sent)
	}
}
