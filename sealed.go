package sqlfence

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Sealed has the database itself refuse every write of the table that doesn't prove its
// token, whoever sends it: another program, psql, a stored function, a trigger, a cascade. It
// is a rule on top of [RowFence], may be combined with the others, and refuses nothing by
// itself: the seal is triggers, which schema.Seal installs. docs/sealed.md has what each kind
// of client sees.
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

// unseals reports whether the statement doesn't prove the tokens of one of its tables,
// though that may be sealed, and notes it.
func (e *execution) unseals(t *table) bool {
	if !t.rules.Sealed {
		return false
	}
	proves, judged := e.judged[t]
	if !judged {
		proves = e.state.found.IsSealed(t.spelled)
	}
	e.unsealed, e.proves = e.unsealed || !proves, e.proves || proves
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

// misjudged reports whether err may be about a guarded statement that was written for a sealed
// table which isn't, or the reverse. Only the database knows.
func (e *execution) misjudged(err error) bool {
	if err == nil || !e.writesSealed() {
		return false
	}
	switch sqltext.ReadSealRefusal(err) {
	case sqltext.NotSealed:
		return e.proves
	case sqltext.NotProven:
		return e.unsealed && e.isSealed(sealOf(err))
	}
	return false
}

// isSealed reports whether the statement writes to a table that may be sealed and has this name.
func (e *execution) isSealed(name string) bool {
	return slices.ContainsFunc(e.plan.Tables, func(i int) bool {
		t := e.registry.tables[i]
		return t.rules.Sealed && t.isCalled(name)
	})
}

// judge asks for the seals, and notes those of the statement's tables. For this statement the answers hold
// whatever other connections learn meanwhile. Without an answer it is false.
func (e *execution) judge(ctx context.Context) bool {
	s := e.state
	if err := s.session.AskForSeals(ctx, (*asking)(s)); err != nil {
		return false
	}
	e.judged = make(map[*table]bool)
	for i := range e.plan.Tables {
		t := e.table(i)
		e.judged[t] = s.found.IsSealed(t.spelled)
	}
	return true
}

// sealTurns is how often a statement is sent again at most: a seal may come or go while it
// waits for a lock.
const sealTurns = 10

// resealed looks at the error of a guarded statement. If that may say that the statement was written for
// another state of the seals than that of the database, the database is asked, and the statement, of which nothing was
// applied, is rendered anew, to be sent again; once if that changes nothing. Where the error has ended its transaction, nothing can be asked, and
// typed says why; else typed is err.
func (e *execution) resealed(ctx context.Context, err error) (again bool, typed error) {
	if !e.misjudged(err) {
		return false, err
	}
	if s := e.state; s.inTx && s.settings.profile.errorEndsTx() {
		s.found.ForgetSeals()
		if e.plan.Several > 0 {
			return false, err
		}
		return false, &sealMissed{err}
	}
	if !e.judge(ctx) || e.plan.Several > 0 { // those before it may have been applied
		return false, err
	}
	before := e.sent.query
	e.unsealed, e.proves = false, false
	decided, _ := e.render()
	if e.sent.query == before { // the seal may have come and gone since the refusal
		if e.sentAgain {
			return false, err
		}
		e.sentAgain = true
	}
	return decided == guarded, err
}

// sealMissed is the error of a statement in a transaction that was written for another
// state of the table's seal, and that can be run again in a new transaction.
type sealMissed struct{ error }

func (e *sealMissed) Unwrap() error   { return e.error }
func (e *sealMissed) Temporary() bool { return true }

// What the triggers of a seal say, in every database. The code says which of these it is.
var (
	saysSealed    = regexp.MustCompile(`(?s)sqlfence: table (.+) is sealed: `)
	saysStale     = regexp.MustCompile(`(?s)sqlfence: stale token (\d+) for table (.+), which has (\d+)`)
	saysNotIssued = regexp.MustCompile(`(?s)sqlfence: token (\d+) for table (.+) is not issued, the newest is (\d+)`)
)

// sealOf returns the table whose seal has refused a write; empty if the message doesn't say.
func sealOf(err error) string {
	if m := saysSealed.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return ""
}

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
		return s.unprovenWrite(sealOf(err), err), true
	case sqltext.SerialKept:
		table, _ := s.sealedTable(sealOf(err))
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
		return &StaleError{Table: table, Token: Token{Name: resource, Value: token}, Current: current, err: err}, true
	}
	return &NotIssuedError{Table: table, Token: Token{Name: resource, Value: token}, Current: current, err: err}, true
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
