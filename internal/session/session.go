// Package session keeps the facts that a connection knows about its server and its session: that the server throws
// guards' errors, and capabilities and settings that guards rely on and that a statement's SQL doesn't show.
// [Session.Know] queries the facts before a connection's first guarded write.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A Conn is a connection of the base driver.
type Conn interface {
	// Query sends a query without arguments, and returns its rows. NULL is the empty text.
	Query(ctx context.Context, query string) ([][]string, error)

	// Exec executes a statement without arguments.
	Exec(ctx context.Context, query string) error
}

// Wants are the facts that a fenced database needs in addition to each server's facts.
type Wants struct {
	Schema   string   // ledger's schema by the options; empty for the search path's
	Ledger   bool     // some table is compared with the ledger
	Sealed   []Name   // the tables that may be sealed
	Untested []string // names of servers that the application accepts untested
	Nothing  bool     // the server is a mock

	Read Names // tables with columns that guards read
}

// A Name is a table's name as the database stores it. An empty Schema means the session's search path.
type Name struct{ Schema, Table string }

// A Session holds the facts that one connection knows. Only one goroutine may use a Session at a time.
type Session struct {
	// Capabilities are read from the server; the zero value before the first query.
	Capabilities

	dialect       *Dialect
	front         Capabilities // those of [Dialect].ReadVersion
	database      *Database
	wants         *Wants
	callsFunction bool // guards use the ledger's function
	throws        bool // the server throws guards' errors
	known         bool // the facts are known
	counted       bool // the facts include ReturnsCounts
	changed       bool // the session may have changed since the query
	schemaChanged bool // the session may find names in another schema than at first
	refusal       error
}

// Capabilities are capabilities of a server and settings of a session. The zero value hinders no guard.
type Capabilities struct {
	// Version is the server's version string. Comment is the vendor's, or an extension that turns the server into
	// another product.
	Version, Comment string

	// Front is the version string that the server, or a proxy in front of the server, returns to [Dialect].Version.
	Front string

	// Text builds SQL for this server; nil if that is the dialect's Text. Hides is what may hide the texts of a guard's
	// errors on this server.
	Text  sqltext.Dialect
	Hides string

	// Apart is empty if a lock on a row that the transaction doesn't write, as on the ledger's, blocks changes of that
	// row. Else it is the condition for such blocking, and why the server doesn't meet the condition.
	Apart string

	// LocksAlone: only a transaction keeps a row lock, every row lock is exclusive, and all reads of a locking query
	// see the newest rows. A guard reads the rows of other tables once, before the statement waits for a lock. So a
	// separate query must lock these rows first.
	LocksAlone bool

	// Leaks: if a transaction continues after a failed statement on a table with triggers, its COMMIT sends the
	// statement's undone changes to the other servers of the cluster (docs/galera.md).
	Leaks bool

	// Known is the name of a server in [Dialect].Others on which guards are known to hold. Unfit is why guards don't
	// hold there with the session's settings; empty if guards hold.
	Known, Unfit string

	// Standby: the server takes no writes, and may lag behind the primary.
	Standby bool

	// Escapes is how the session's settings have the server read string literals.
	Escapes lex.Escapes

	// AssignsAtOnce: the columns of a SET list get their values at once, so that a column with two assignments doesn't
	// get the last value.
	AssignsAtOnce bool

	// SetReadsOldRow: an expression in the SET list of an UPDATE sees the old row, and no assignment of the list.
	SetReadsOldRow bool

	// LimitsByKey: a DELETE with a LIMIT may be executed as a query for the keys of its rows, which locks no row, and
	// as a DELETE of these keys without the statement's condition.
	LimitsByKey bool

	// Clips: the server stores the highest number of a column's type instead of a higher number.
	Clips bool

	// Cut: a setting of the session limits the rows of responses that have no LIMIT.
	Cut bool

	// ReturnsCounts: the session makes each write return a row with a count, even without RETURNING.
	ReturnsCounts bool

	// Views are all views and foreign tables with the name of a registered table with columns that guards read.
	Views []View
}

// New returns the session of a new connection, without facts.
func New(d *Dialect, db *Database, w *Wants) Session {
	looks := w.Ledger && d.Text.Capabilities().CreateLedgerFunction != ""
	return Session{dialect: d, database: db, wants: w, callsFunction: looks, throws: w.Nothing, known: w.Nothing}
}

// A Moment is the situation in which a connection needs facts.
type Moment struct {
	// InTx: a transaction is open.
	InTx bool

	// Settings: the session's current settings matter. Otherwise facts from before a change will do.
	Settings bool

	// Counts: it matters whether writes return counts. Otherwise this fact isn't queried.
	Counts bool

	// Ledger: the schema of the ledger's function matters.
	Ledger bool
}

// Know queries the unknown facts. The error is a [*Refusal] if guards don't hold on the server, or aren't known to
// hold. Any other error is the query's, and the facts stay unknown.
func (s *Session) Know(ctx context.Context, c Conn, m Moment) error {
	if s.knows(m) {
		return s.refusal
	}
	w := s.missing(m)
	if err := s.query(ctx, c, m, w); err != nil {
		return err
	}
	if w.Server {
		s.Capabilities, s.known, s.counted, s.changed = w.Capabilities, true, w.Counts, false
		s.refusal = s.judge()
	}
	s.database.learn(w)
	return s.refusal
}

func (s *Session) query(ctx context.Context, c Conn, m Moment, w *Wanted) error {
	send := func(query string) ([][]string, error) { return c.Query(ctx, query) }
	if !s.throws {
		if err := s.dialect.queryFront(&s.front, send); err != nil {
			return queryError(ctx, err)
		}
		w.Capabilities = s.front
		if err := s.probe(ctx, c, m, w); err != nil {
			return err
		}
		s.throws = true
	}
	if err := s.dialect.query(w, send); err != nil {
		return queryError(ctx, err)
	}
	return nil
}

// queryFront queries the facts of [Dialect].ReadVersion.
func (d *Dialect) queryFront(f *Capabilities, send func(query string) ([][]string, error)) error {
	if d.ReadVersion == nil {
		return nil
	}
	rows, err := send(d.Version)
	for _, row := range rows {
		d.ReadVersion(f, row)
	}
	return err
}

// query queries the facts that the canary's error doesn't contain.
func (d *Dialect) query(w *Wanted, send func(query string) ([][]string, error)) error {
	queries := d.Queries(w)
	if w.Server && d.Settings != "" {
		queries = append([]string{d.Settings}, queries...)
	}
	for i := 0; i < len(queries); i++ {
		rows, err := send(queries[i])
		if err != nil {
			return err
		}
		for _, row := range rows {
			d.Read(w, row)
		}
		if i == 0 && w.Capabilities.Cut {
			queries = slices.Insert(queries, 1, d.Uncut)
		}
	}
	return nil
}

// queryError returns the error of one of this package's queries that failed with err. If the server refused the query's
// text, queryError adds context. Otherwise it returns err, because the application's statement would have failed with
// err as well: on a busy or lost connection, an ended context, or a timeout.
func queryError(ctx context.Context, err error) error {
	if !isResponse(ctx, err) {
		return err
	}
	return fmt.Errorf("sqlfence: querying what the server can do: %w", err)
}

// judge refuses a server on which guards aren't known to hold, unless the application accepts the server untested.
func (s *Session) judge() error {
	name := s.dialect.unlike(&s.Capabilities)
	risked := func(taken string) bool { return strings.EqualFold(taken, name) }
	if name == "" || slices.ContainsFunc(s.wants.Untested, risked) {
		return nil
	}
	return &Refusal{Server: name, Version: s.Version}
}

// Knows reports whether the facts about the server are known.
func (s *Session) Knows() bool { return s.known }

// knows reports whether all facts for a moment are known.
func (s *Session) knows(m Moment) bool {
	return s.known && !(s.changed && m.Settings) && !s.missesCounts(m) &&
		(len(s.wants.Sealed) == 0 || s.database.sealsKnown.Load()) &&
		!(m.Ledger && s.LacksFunction()) || s.wants.Nothing
}

// LacksFunction reports whether guards check the ledger by a function, and no such function is known.
func (s *Session) LacksFunction() bool {
	return s.callsFunction && !s.wants.Nothing && s.database.Function() == ""
}

// missesCounts reports whether the fact ReturnsCounts matters and is unknown.
func (s *Session) missesCounts(m Moment) bool {
	return m.Counts && !s.counted && s.dialect.HasCounts.Is()
}

// missing returns the facts to query for a moment.
func (s *Session) missing(m Moment) *Wanted {
	// The search for the ledger's function takes most of a first query's time, so it is left out if the pool knows the
	// function.
	w := &Wanted{LedgerSchema: s.wants.Schema, Server: !s.known || s.changed && m.Settings || s.missesCounts(m),
		Counts: m.Counts, Capabilities: s.front, Function: s.LacksFunction()}
	w.Capabilities.Version = s.Version
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

// Changed records that the session may have changed.
func (s *Session) Changed() { s.changed = s.changed || s.known && s.dialect.HasSettings.Is() }

// NeedsCheck reports whether a guarded statement may fail to protect in this session: the session may find names in
// another schema than at first, a registered table's name may stand for a view, or numbers may be clipped.
func (s *Session) NeedsCheck(ignores bool) bool {
	return s.schemaChanged || len(s.Views) > 0 || s.dialect.Narrow != nil && s.MayClip(ignores)
}

// Reading returns how the session's settings have the server read string literals. If a transaction's end or a function
// may change these settings unseen, Reading queries the server each time.
func (s *Session) Reading(ctx context.Context, c Conn, inTx bool) (lex.Escapes, error) {
	if s.dialect.Strings == "" {
		err := s.Know(ctx, c, Moment{InTx: inTx, Settings: true})
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			err = nil // a Refusal is only about guards
		}
		return s.Escapes, err
	}
	rows, err := c.Query(ctx, s.dialect.Strings)
	if err != nil {
		return lex.EscapesUnknown, queryError(ctx, err)
	}
	return s.dialect.ReadStrings(rows), nil
}

// HasCharset reports whether an encoding that a session can change is among the facts.
func (s *Session) HasCharset() bool { return s.dialect.HasCharset.Is() }

// Follow records that a statement, which is about to be sent, may change facts, which are then queried again.
func (s *Session) Follow(ctx context.Context, c Conn, query string) {
	if s.known && !s.changed && s.dialect.HasSettings.Is() && Changes(query) {
		s.changed = true
	}
	if !s.schemaChanged && s.mayChangeSchema(query) {
		s.noteSchemaChange(ctx, c)
	}
}

// Follows reports whether each execution of a statement must be inspected.
func (s *Session) Follows(query string) bool { return s.Unsettles(query) || s.mayChangeSchema(query) }

// Unsettles reports whether a statement may change the facts about the session, or the session's ledger.
func (s *Session) Unsettles(query string) bool {
	return s.dialect.HasSettings.Is() && Changes(query) || s.MayChangeLedger(query)
}

// QueryServer queries the facts about the server.
func QueryServer(ctx context.Context, d *Dialect,
	query func(ctx context.Context, query string) ([][]string, error)) (Capabilities, error) {
	w := &Wanted{Server: true, Probed: true}
	send := func(text string) ([][]string, error) { return query(ctx, text) }
	err := d.queryFront(&w.Capabilities, send)
	if err == nil {
		err = d.query(w, send)
	}
	if err != nil {
		return Capabilities{}, queryError(ctx, err)
	}
	return w.Capabilities, nil
}
