package sqlfence

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
	"github.com/sqlfence/sqlfence/rewrite"
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
// guarded statement on the table, and again after a write that the seal has refused; such a statement
// is sent once more if it stands outside of a transaction, and else fails with a temporary error
// (see [Retry]).
//
// A table with [Optional] or [UnfencedInserts] can't be sealed. The seal
// holds whatever the mode: in [Observe] mode, and under [Bypass], the database refuses.
func Sealed() Rule {
	return func(t *table) { t.rules.Sealed = true }
}

// seals is what the connections of one database know about the seals of its tables. It is
// safe for concurrent use. The zero value knows nothing.
type seals struct{ known sync.Map } // of *table to whether it is sealed

// has reports whether a table is known to be sealed. In doubt it isn't: a sealed table
// refuses what is written to another, but one without a seal would store a negative mark.
func (s *seals) has(t *table) bool {
	sealed, known := s.known.Load(t)
	return known && sealed.(bool)
}

// findSeals asks for the seals of the plan's tables that nothing is known about. Without
// an answer nothing fails.
// In a transaction that an error doesn't end, a refusal tells as well; and there a read before the
// first write would be the transaction's snapshot, by which SQLite may refuse the write.
func (e *execution) findSeals(ctx context.Context) {
	if s := e.state; !e.registry.sealed || s.inTx && !s.settings.profile.errorEndsTx() {
		return
	}
	for i := range e.plan.Tables {
		t := e.table(i)
		if !t.rules.Sealed {
			continue
		}
		if _, known := e.state.seals.known.Load(t); known {
			continue
		}
		schema, name, _ := rewrite.SpellName(e.state.settings.profile.dialect(), t.name)
		question := e.state.settings.profile.text().FindSeal(schema, name)
		if _, found, err := queryText(ctx, e.state.base, question); err == nil {
			e.state.seals.known.Store(t, found)
		}
	}
}

// unseals reports whether the statement doesn't prove the tokens of one of its tables,
// though that may be sealed, and notes it.
func (e *execution) unseals(t *table) bool {
	if !t.rules.Sealed {
		return false
	}
	proves, judged := e.judged[t]
	if !judged {
		proves = e.state.seals.has(t)
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

// misjudged reports whether err says that a guarded statement was written for a sealed
// table, and it isn't, or the reverse.
func (e *execution) misjudged(err error) bool {
	if err == nil || !e.writesSealed() {
		return false
	}
	message := err.Error()
	if e.proves && strings.Contains(message, sqltext.SealedMark) {
		return true
	}
	table := unproven(message)
	return e.unsealed && slices.ContainsFunc(e.plan.Tables, func(i int) bool { return e.registry.tables[i].isCalled(table) })
}

// learn notes what a refusal says about the seals of the plan's tables. For this statement
// that holds whatever other connections are told meanwhile.
func (e *execution) learn(err error) {
	if e.judged == nil {
		e.judged = make(map[*table]bool)
	}
	table := unproven(err.Error())
	for i := range e.plan.Tables {
		if t := e.table(i); t.rules.Sealed && (table == "" || t.isCalled(table)) {
			e.judged[t] = table != ""
			e.state.seals.known.Store(t, table != "")
		}
	}
}

// sealTurns is how often a statement is sent again at most: a seal may come or go while it
// waits for a lock.
const sealTurns = 10

// resealed looks at the error of a guarded statement. If the statement was written for
// another state of the seals than that of the database, of which nothing was applied, it is
// rendered anew, to be sent again. Where the error has ended its transaction, it isn't, and
// typed says why; else typed is err.
func (e *execution) resealed(err error) (again bool, typed error) {
	if !e.misjudged(err) {
		return false, err
	}
	e.learn(err)
	if e.plan.Several > 0 { // those before it may have been applied
		return false, err
	}
	s := e.state
	if s.inTx && s.settings.profile.errorEndsTx() {
		return false, &sealMissed{err}
	}
	e.unsealed, e.proves = false, false
	decided, _ := e.render()
	return decided == guarded, err
}

// sealing has all seals asked for again after a statement of package schema's that may have
// changed them.
func (s *connState) sealing(ctx context.Context, query string) {
	if s.settings.sealed && trusted.Is(ctx, query) && sqltext.ChangesSeal(query) {
		s.seals.known.Clear()
	}
}

// sealMissed is the error of a statement in a transaction that was written for another
// state of the table's seal, and that can be run again in a new transaction.
type sealMissed struct{ error }

func (e *sealMissed) Unwrap() error   { return e.error }
func (e *sealMissed) Temporary() bool { return true }

// sealRefusals are what the triggers of a seal say, in every database. SQLite's say no tokens.
var sealRefusals = regexp.MustCompile(`(?s)sqlfence: (?:table (.+) is sealed: |stale token(?: (\d+))? for table (.+), which has (\d+|a newer one)|token(?: (\d+))? for table (.+) is not issued(?:, the newest is (\d+))?)`)

// unproven returns the table of which a seal says that a write proved no token; empty for
// another message.
func unproven(message string) string {
	if m := sealRefusals.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

// isCalled reports whether the table has this name in the database.
func (t *table) isCalled(name string) bool { return strings.EqualFold(t.rules.Name, name) }

// refusedBySeal returns the typed error for err if a seal has raised it, and true; else
// err as it is, and false. The write may have been a trigger's, of another table.
func (s *settings) refusedBySeal(err error) (error, bool) {
	if err == nil {
		return nil, false
	}
	message := err.Error()
	if !strings.Contains(message, "sqlfence: ") {
		return err, false
	}
	m := sealRefusals.FindStringSubmatch(message)
	switch {
	case m == nil:
		return err, false
	case m[1] != "":
		return s.unprovenWrite(m[1], err), true
	case m[3] != "" && m[2] == "":
		table, _ := s.sealedTable(m[3])
		return &refusal{sentinel: ErrStale, err: err, table: table, reason: fmt.Sprintf("table %q is sealed, and has a newer token", table)}, true
	case m[3] != "":
		table, resource := s.sealedTable(m[3])
		return &StaleError{Table: table, Token: Token{Name: resource, Value: number(m[2])}, Current: number(m[4]), err: err}, true
	}
	table, resource := s.sealedTable(m[6])
	if m[5] == "" {
		return &refusal{sentinel: ErrNotIssued, err: err, table: table, reason: fmt.Sprintf("table %q is sealed, and the token was never issued or adopted", table)}, true
	}
	return &NotIssuedError{Table: table, Token: Token{Name: resource, Value: number(m[5])}, Current: number(m[7]), err: err}, true
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
