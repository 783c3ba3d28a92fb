package sqlfence

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Sealed has the database itself refuse every write of the table that doesn't prove its token, from
// any client: another program, psql, a stored function, a trigger, a cascade. It is a rule on top
// of [RowFence], may be combined with the others, and refuses nothing by itself: the seal is
// triggers, which schema.Seal installs. docs/sealed.md has what each kind of client sees.
//
// A guarded write proves its token by assigning the token's negative to the fence column,
// which the triggers turn into the token. As long as the table isn't sealed, statements are
// those of RowFence. So a program with Sealed can be deployed first, and the table
// sealed while it runs. The database is asked for the seal once, before the first
// guarded statement, and again after a write that the seal has refused; such a statement
// is sent once more if it stands outside of a transaction, and else fails with a temporary error
// (see [Retry]).
//
// A table with [Optional] or [UnfencedInserts] can't be sealed, nor one of SQLite. The seal
// holds whatever the mode: in [Observe] mode, and under [Bypass], the database refuses.
func Sealed() Rule {
	return func(t *table) { t.rules.Sealed = true }
}

// A sealing is how the tables of a statement that may be sealed are written.
type sealing struct {
	proves   bool            // one as a table that is sealed
	unsealed bool            // one as a table that isn't
	judged   map[*table]bool // whether they are sealed, once a refusal has had that asked; nil before
}

// unseals reports whether the statement doesn't prove the tokens of one of its tables,
// though that may be sealed, and notes it.
func (e *execution) unseals(t *table) bool {
	if !t.rules.Sealed {
		return false
	}
	s := &e.with.seals
	proves, judged := s.judged[t]
	if !judged {
		proves = e.state.found.IsSealed(t.spelled)
	}
	s.unsealed, s.proves = s.unsealed || !proves, s.proves || proves
	return !proves
}

// writesSealed reports whether the statement writes to a table that may be sealed.
func (e *execution) writesSealed() bool {
	if !e.registry.sealed {
		return false
	}
	for i := range e.plan.Tables {
		if e.table(i).rules.Sealed {
			return true
		}
	}
	return false
}

// maySeal reports whether the statement writes to a table that may be sealed and has this name.
func (e *execution) maySeal(name string) bool {
	return slices.ContainsFunc(e.plan.Tables, func(i int) bool {
		t := e.registry.tables[i]
		return t.rules.Sealed && t.isCalled(name)
	})
}

// judge notes which of the statement's tables are sealed, now that the database was asked. For this statement that
// holds whatever other connections learn meanwhile.
func (e *execution) judge() {
	e.with.seals = sealing{}
	if !e.writesSealed() {
		return
	}
	judged := make(map[*table]bool)
	for i := range e.plan.Tables {
		t := e.table(i)
		judged[t] = e.state.found.IsSealed(t.spelled)
	}
	e.with.seals.judged = judged
}

// What the triggers of a seal say, in every database. The code says which of these it is.
var (
	saysStale     = regexp.MustCompile(`(?s)sqlfence: stale token (\d+) for table (.+), which has (\d+)`)
	saysNotIssued = regexp.MustCompile(`(?s)sqlfence: token (\d+) for table (.+) is not issued, the newest is (\d+)`)
)

// isCalled reports whether the table has this name in the database.
func (t *table) isCalled(name string) bool { return strings.EqualFold(t.rules.Name, name) }

// refusedBySeal returns the typed error for err if a seal has raised it, and true; else
// err as it is, and false. The write may have been a trigger's, of another table.
func (s *settings) refusedBySeal(err error) (error, bool) {
	refused := sqltext.ReadSealRefusal(err)
	switch refused {
	case sqltext.NoSealRefusal, sqltext.NotSealed:
		return err, false
	case sqltext.NotProven:
		return s.unprovenWrite(sqltext.SealOf(err), err), true
	case sqltext.SerialKept:
		table, _ := s.sealedTable(sqltext.SealOf(err))
		return &refusal{sentinel: ErrNoSerial, err: err, table: table,
			reason: fmt.Sprintf("table %q is sealed, and the write didn't raise its serial (docs/sealed.md)", table)}, true
	}
	says := saysStale
	if refused == sqltext.NotIssuable {
		says = saysNotIssued
	}
	var name string
	var token, current int64
	if m := says.FindStringSubmatch(err.Error()); m != nil { // MySQL cuts a long message
		token, name, current = number(m[1]), m[2], number(m[3])
	}
	table, resource := s.sealedTable(name)
	if refused == sqltext.StaleProof {
		return &StaleError{Table: table, Token: Token{Name: resource, Value: token}, Current: current, refusedAs: refusedAs[isStale]{err}}, true
	}
	return &NotIssuedError{Table: table, Token: Token{Name: resource, Value: token}, Current: current, refusedAs: refusedAs[isNotIssued]{err}}, true
}

// unprovenWrite is the error of a write that proved no token to the seal of a table. Where the
// table has Sealed, it was one that sqlfence didn't write: under Bypass, or a trigger's.
func (s *settings) unprovenWrite(name string, err error) error {
	registered, _ := s.sealedTable(name)
	write := "register it with Sealed"
	if slices.ContainsFunc(s.tables, func(t *table) bool { return t.isCalled(name) && t.rules.Sealed }) {
		write = "under Bypass, and in a trigger, assign minus the token to its fence column, or unseal it first"
	}
	return &refusal{sentinel: ErrNoFence, err: err, table: registered,
		reason: fmt.Sprintf("table %q is sealed, and the write didn't prove a token; %s (docs/sealed.md)", registered, write)}
}

// sealedTable returns the names, as registered, of a table that a seal names, and of its
// tokens. The seal of one that isn't registered has its own name for both.
func (s *settings) sealedTable(name string) (table, resource string) {
	for _, t := range s.tables {
		if t.isCalled(name) {
			return t.name, t.resource
		}
	}
	return name, name
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // beyond all tokens it is the highest integer
	return n
}
