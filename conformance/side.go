package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
)

// A variant is one way to take the steps of a transparency check.
type variant string

const (
	alone             variant = "driver alone"
	wrapped           variant = "with sqlfence"
	wrappedRegistered variant = "with sqlfence, books registered"
)

// A side is one of the databases that a transparency check compares: opened with or without sqlfence, by its variant,
// with the table books and the books 1, 2 and 3, and with a log of the steps that were taken on it.
type side struct {
	kit
	variant variant
	db      *sql.DB
	events  *events

	mu  sync.Mutex
	log []entry
}

// An entry is the result of one step: a text that must be equal on both sides, or interfaces that sqlfence must keep.
type entry struct {
	step, shown string
	abilities   []string
}

func take(t testing.TB, h Harness, d sqlfence.Dialect, v variant, steps func(*side)) (s *side) {
	t.Helper()
	s = &side{variant: v, events: new(events)}
	s.kit = newKit(t, h, d)
	defer s.cleanup()
	defer s.endIfStopped()
	s.db = s.open(s.connector)
	s.create()
	steps(s)
	return s
}

func (s *side) open(c driver.Connector) *sql.DB {
	if s.variant == alone {
		return s.closing(sql.OpenDB(c), nil)
	}
	opts := []sqlfence.Option{sqlfence.WithObserver(s.events.add)}
	if s.variant == wrappedRegistered {
		opts = append(opts, sqlfence.WithTable("books", sqlfence.RowFence("fence_token")))
	}
	return s.closing(s.harness.open(c, opts...))
}

func (s *side) show(step string, values ...any) {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v)
	}
	shown := strings.Join(texts, ", ")
	if s.database != "" {
		shown = strings.ReplaceAll(shown, s.database, "database")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, entry{step: step, shown: shown})
}

// prepared shows how a statement is prepared and closed, and calls do with it in between.
func (s *side) prepared(query string, do func(*sql.Stmt)) {
	prepared, err := s.db.PrepareContext(s.ctx, query)
	s.show(query+", prepare", err)
	if err == nil {
		do(prepared)
		s.show(query+", closing", prepared.Close())
	}
}

// offers logs abilities. The other side may have additional abilities.
func (s *side) offers(step string, abilities []string) {
	s.log = append(s.log, entry{step: step, abilities: abilities})
}

// compare returns the differences between the log of other, with sqlfence, and the logs of raw, of the driver alone. It
// returns "" if each entry of other equals the entry of at least one of raw, which has several logs if the check
// varies.
func compare(raw []*side, other *side) string {
	for _, s := range append(raw[:len(raw):len(raw)], other) {
		if len(s.failures) > 0 {
			return fmt.Sprintf("%s: %s", s.variant, s.reason())
		}
	}
	var differences []string
	for i := range max(len(raw[0].log), len(other.log)) {
		if i >= len(raw[0].log) || i >= len(other.log) || raw[0].log[i].step != other.log[i].step {
			differences = append(differences, fmt.Sprintf("step %d: other steps were taken", i))
			break
		}
		difference := ""
		for _, s := range raw {
			if difference = differs(s, other, i); difference == "" {
				break
			}
		}
		if difference != "" {
			differences = append(differences, difference)
		}
	}
	return shorten(differences)
}

// differs returns how other's entry i differs from raw's.
func differs(raw, other *side, i int) string {
	a, b := raw.log[i], other.log[i]
	if other.variant == wrappedRegistered {
		// The guard is part of the statement, so the text after the guard has a different position.
		for _, shown := range []*string{&a.shown, &b.shown} {
			*shown = positions.ReplaceAllString(rests.ReplaceAllString(*shown, "near"), "$1 N")
		}
	}
	if a.shown != b.shown {
		return fmt.Sprintf("%s\n  %s: %s\n  %s: %s", a.step, raw.variant, a.shown, other.variant, b.shown)
	}
	kept := func(ability string) bool { return slices.Contains(b.abilities, ability) }
	if lost := slices.DeleteFunc(slices.Clone(a.abilities), kept); len(lost) > 0 {
		return fmt.Sprintf("%s\n  %s: lost: %s", a.step, other.variant, strings.Join(lost, ", "))
	}
	return ""
}

// patience is far longer than any step takes, because a busy machine may pause.
const patience = 2 * time.Minute

// eventually waits, with a limit, until seen returns true. It is for effects of database/sql's background goroutines.
func (k *kit) eventually(what string, seen func() bool) {
	limit := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !seen() {
		select {
		case <-limit:
			k.fatalf("not seen in %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

type events struct {
	mu   sync.Mutex
	seen []sqlfence.Event
}

func (e *events) add(_ context.Context, event sqlfence.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, event)
}

func (e *events) take() []sqlfence.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.seen
	e.seen = nil
	return seen
}
