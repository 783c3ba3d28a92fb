// Package session keeps what a connection knows of its server and of its session: that the server
// raises what guards raise, and facts that guards rely on, which no statement's text shows. They are
// asked for in one place, before the first guarded write of a connection, and forgotten in one.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// A Conn is a connection of the base driver's.
type Conn interface {
	// Query sends a query without arguments, and returns its rows. NULL is the empty text.
	Query(ctx context.Context, query string) ([][]string, error)

	// Exec executes a statement without arguments.
	Exec(ctx context.Context, query string) error
}

// Wants are what a fenced database needs to know beside the facts of every server.
type Wants struct {
	Schema   string   // of the ledger by the options; empty for where the session finds it
	Ledger   bool     // some table is compared with the ledger: where it is, and which function asks it
	Sealed   []Name   // the tables that may be sealed
	Untested []string // the names of servers that the application takes the risk of
	Nothing  bool     // there is no server, but a mock

	Read Names // of the tables with columns that guards read
}

// A Name is a table's name as the database stores it; Schema is empty for the one that the
// session finds by itself.
type Name struct{ Schema, Table string }

// A Session is what one connection knows. Like the connection, one goroutine at a time uses it.
type Session struct {
	// Facts are what the server has answered; those of nothing if it wasn't asked.
	Facts

	dialect  *Dialect
	database *Database
	wants    *Wants
	looks    bool // for the ledger's function
	proven   bool // that it raises
	asked    bool // for the facts
	counted  bool // whether writes return counts is one of them
	changed  bool // the session may have, since it was asked
	strayed  bool // the session may find names elsewhere than in the beginning
	refusal  error
}

// Facts are those of a server and a session. The zero value is that nothing stands in the way of
// a guard.
type Facts struct {
	// Version is what the server says of itself, and Comment what its makers do, or an extension that makes another
	// server of it.
	Version, Comment string

	// Apart says where alone the lock of a row that isn't written holds off who changes that row, and why this isn't
	// there; empty where it holds them off.
	Apart string

	// Leaks: in a transaction that goes on behind a statement which has failed, the other servers get what had been
	// changed by its rows that have triggers.
	Leaks bool

	// Known is the name of one of the Others that guards are known to hold on. Unfit is why they don't hold there by
	// what the session has set; empty where they do.
	Known, Unfit string

	// Standby: it takes no writes, and may be behind the server that does.
	Standby bool

	// Escapes is how the session has strings read.
	Escapes lex.Escapes

	// AssignsAtOnce: the columns of a SET list get their values all at once, so that one which is
	// assigned twice doesn't get its last value.
	AssignsAtOnce bool

	// AssignsUnseen: what stands in the SET list of an UPDATE sees the row as it was, and nothing that the list has
	// assigned.
	AssignsUnseen bool

	// Clips: the highest number of a column's type is stored in the place of a higher one.
	Clips bool

	// ReturnsCounts: the session has each write return a row, which no text shows.
	ReturnsCounts bool

	// Views are what has the name of a table with columns that guards read and isn't one, in any schema.
	Views []View
}

// New returns what a new connection knows, which is nothing.
func New(d *Dialect, db *Database, w *Wants) Session {
	looks := w.Ledger && d.Text.Facts().CreateLedgerFunction != ""
	return Session{dialect: d, database: db, wants: w, looks: looks, proven: w.Nothing, asked: w.Nothing}
}

// A Moment is when a connection asks.
type Moment struct {
	// InTx: a transaction is open.
	InTx bool

	// Settings: it matters what the session has set. Else what was known before the session may
	// have changed will do.
	Settings bool

	// Counts: it matters whether writes return counts, which isn't asked for otherwise.
	Counts bool

	// Ledger: it matters where the function is that asks the ledger.
	Ledger bool
}

// Know asks the server for what isn't known. The error is a [*Refusal] if guards don't hold on the
// server, or aren't known to; another one is that of the question, and nothing is known then.
func (s *Session) Know(ctx context.Context, c Conn, m Moment) error {
	if s.knows(m) {
		return s.refusal
	}
	w := s.missing(m)
	if err := s.ask(ctx, c, m, w); err != nil {
		return err
	}
	if w.Server {
		s.Facts, s.asked, s.counted, s.changed = w.Facts, true, w.Counts, false
		s.refusal = s.judge()
	}
	s.database.learn(w)
	return s.refusal
}

func (s *Session) ask(ctx context.Context, c Conn, m Moment, w *Wanted) error {
	if !s.proven {
		if err := s.prove(ctx, c, m, w); err != nil {
			return err
		}
		s.proven = true
	}
	if err := s.question(ctx, c, w); err != nil {
		return unanswered(ctx, err)
	}
	return nil
}

// question asks for what isn't in the proof.
func (s *Session) question(ctx context.Context, c Conn, w *Wanted) error {
	for _, query := range s.dialect.queries(w) {
		rows, err := c.Query(ctx, query)
		if err != nil {
			return err
		}
		for _, row := range rows {
			s.dialect.Read(w, row)
		}
	}
	return nil
}

// queries returns those for what is wanted and isn't in the proof.
func (d *Dialect) queries(w *Wanted) []string {
	queries := d.Questions(w)
	if w.Server && d.Settings != "" {
		queries = append([]string{d.Settings}, queries...)
	}
	return queries
}

// unanswered returns the error of a query of this package's that failed with err. Unless the server has refused the
// query for what it says, that is err itself, because the application's own statement would have met it: a connection
// that is busy with open rows, or is lost, a context that has ended, a timeout.
func unanswered(ctx context.Context, err error) error {
	if !isAnswer(ctx, err) {
		return err
	}
	return fmt.Errorf("sqlfence: asking the server about itself: %w", err)
}

// judge refuses a server on which guards aren't known to hold, unless its risk is taken.
func (s *Session) judge() error {
	name := s.dialect.unlike(&s.Facts)
	risked := func(taken string) bool { return strings.EqualFold(taken, name) }
	if name == "" || slices.ContainsFunc(s.wants.Untested, risked) {
		return nil
	}
	return &Refusal{Server: name, Version: s.Version}
}

// knows reports whether nothing is missing at a moment.
func (s *Session) knows(m Moment) bool {
	return s.asked && !(s.changed && m.Settings) && !s.missesCounts(m) &&
		(len(s.wants.Sealed) == 0 || s.database.sealsKnown.Load()) &&
		!(m.Ledger && s.LacksFunction()) || s.wants.Nothing
}

// LacksFunction reports whether guards ask the ledger by a function, and none is known to be in the database.
func (s *Session) LacksFunction() bool {
	return s.looks && !s.wants.Nothing && s.database.Function() == ""
}

// missesCounts reports whether it isn't known, and matters, whether writes return counts.
func (s *Session) missesCounts(m Moment) bool {
	return m.Counts && !s.counted && s.dialect.HasCounts.Is()
}

// missing returns what has to be asked for at a moment.
func (s *Session) missing(m Moment) *Wanted {
	// To look for the function takes most of the time of a connection's first question, and the pool may know.
	w := &Wanted{Home: s.wants.Schema, Server: !s.asked || s.changed && m.Settings || s.missesCounts(m),
		Counts: m.Counts, Facts: Facts{Version: s.Version}, Function: s.LacksFunction()}
	if w.Server {
		w.Read = s.wants.Read
	}
	for _, name := range s.wants.Sealed {
		if _, known := s.database.seals.Load(name); !known {
			w.Sealed = append(w.Sealed, name)
		}
	}
	return w
}

// Changed notes that the session may have been changed.
func (s *Session) Changed() { s.changed = s.changed || s.asked && s.dialect.HasSettings.Is() }

// InQuestion reports whether what the session has may not do for a guarded statement: it may find names elsewhere than
// in the beginning, finds views by tables' names, or may clip numbers, as a statement that ignores errors may.
func (s *Session) InQuestion(ignores bool) bool {
	return s.strayed || len(s.Views) > 0 || s.dialect.Narrow != nil && s.MayClip(ignores)
}

// Reading returns how the session has strings read. Where a transaction's end, or a function, may change that unseen, the
// server is asked each time.
func (s *Session) Reading(ctx context.Context, c Conn, inTx bool) (lex.Escapes, error) {
	if s.dialect.Strings == "" {
		err := s.Know(ctx, c, Moment{InTx: inTx, Settings: true})
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			err = nil // it is about guards
		}
		return s.Escapes, err
	}
	rows, err := c.Query(ctx, s.dialect.Strings)
	if err != nil {
		return lex.EscapesUnknown, unanswered(ctx, err)
	}
	return s.dialect.ReadStrings(rows), nil
}

// HasCharset reports whether an encoding that a session can change is among the facts.
func (s *Session) HasCharset() bool { return s.dialect.HasCharset.Is() }

// Follow forgets what a statement, which is about to be sent, may change.
func (s *Session) Follow(ctx context.Context, c Conn, query string) {
	if s.asked && !s.changed && s.dialect.HasSettings.Is() && Changes(query) {
		s.changed = true
	}
	if !s.strayed && s.mayStray(query) {
		s.leave(ctx, c)
	}
}

// Follows reports whether a statement has to be looked at each time that it is sent.
func (s *Session) Follows(query string) bool { return s.Unsettles(query) || s.mayStray(query) }

// Unsettles reports whether a statement may change what is known of the session, or where its ledger is.
func (s *Session) Unsettles(query string) bool {
	return s.dialect.HasSettings.Is() && Changes(query) || s.MayMove(query)
}

// Apart asks for the fact of this name.
func Apart(ctx context.Context, d *Dialect,
	query func(ctx context.Context, query string) ([][]string, error)) (string, error) {
	w := &Wanted{Server: true, Proven: true}
	for _, question := range d.queries(w) {
		rows, err := query(ctx, question)
		if err != nil {
			return "", unanswered(ctx, err)
		}
		for _, row := range rows {
			d.Read(w, row)
		}
	}
	return w.Facts.Apart, nil
}
