package catalogue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/session"
)

// together is how many tables one query reads.
const together = 100

// checkRows reads the tokens stored in the rows, and compares them with the ledger. One statement reads both from one
// snapshot, in which the ledger can't be behind a row, because a token is issued before it is written.
func checkRows(l *look) {
	if !l.opts.Rows {
		return
	}
	var marked []target
	for _, t := range l.targets {
		c, ok := t.rel.column(l.db, t.FenceColumn)
		switch {
		case t.rel.remote: // the other server may be away
		case t.FenceColumn == "" || !ok || l.db.judge("fence", c).level == Fault:
		case !c.reads:
			l.noteDenied("the marks of table "+l.name(t.rel), "no privilege to SELECT its fence column")
		default:
			marked = append(marked, t)
		}
	}
	for chunk := range slices.Chunk(marked, together) {
		l.checkStoredTokens(chunk)
	}
	for _, ledger := range l.ledgers {
		l.checkRange(ledger)
	}
}

// decided sends a query about the rows of tables as [look.rows] does, but to the primary, because a standby may have an
// old state of the rows: a pooler such as pgpool sends a query to the primary if it also checks for a standby. decided
// ignores the result of this check, because checkSettings reports a standby.
func (l *look) decided(what, query string) (found [][]string) {
	for _, row := range l.rows(what, l.db.known.Session.Deciding(query)) {
		if len(row) < session.Front {
			l.err = fmt.Errorf("%s: unexpected row %q", what, row)
			return nil
		}
		if row[session.Front-1] != "" {
			found = append(found, row[session.Front:])
		}
	}
	return found
}

// mostNames is how many names a finding has.
const mostNames = 5

// checkRange looks for names that may run out of tokens. One above the highest was replaced on purpose.
func (l *look) checkRange(ledger *relation) {
	if !isLedger(l, ledger) {
		return
	}
	rows := l.decided("the ledger", fmt.Sprintf("SELECT name, token FROM %s WHERE token >= %d AND token <= %d "+
		"ORDER BY token DESC, name LIMIT %d",
		l.quoted(ledger), core.WarnToken, core.MaxToken, mostNames+1))
	if len(rows) == 0 {
		return
	}
	level := Warning
	var names []string
	for _, row := range rows {
		token := number(row[1])
		name := strconv.Quote(row[0])
		if row[0] == "" {
			name = "the number that new names begin above"
		}
		names = append(names, fmt.Sprintf("%s at %d, which is %.1f %% of the highest", name, token,
			100*float64(token)/float64(core.MaxToken)))
		if token >= core.MaxToken {
			level = Fault
		}
	}
	if len(names) > mostNames {
		names = append(names[:mostNames], "and others")
	}
	l.add(nil, Finding{
		Level: level, Code: "tokens-run-out",
		Problem: fmt.Sprintf("In the ledger %s tokens are near the end of their range: %s.", l.name(ledger),
			strings.Join(names, "; ")),
		Remedy: "Find out what has raised them, such as a repair to too high a floor or an adopted number; " +
			"replace such a name by tokens.Store.Rotate or sqlfence tokens rotate before it reaches the highest, " +
			"from where it gets no token any more.",
	})
}

func (l *look) checkStoredTokens(of []target) {
	parts, builtIn := make([]string, len(of)), l.db.Capabilities().BuiltIn
	for i, t := range of {
		mark, newest := l.db.Quote(t.FenceColumn), "0 AS names, 0 AS newest"
		if ledger := l.ledgerOf(t); isLedger(l, ledger) {
			names := "name = " + l.db.Text(t.Resource)
			if t.Key != "" {
				prefix := t.Resource + "/"
				names = builtIn + "substr(name, 1, " + strconv.Itoa(l.db.length(prefix)) + ") = " + l.db.Text(prefix)
			}
			names = " FROM " + l.quoted(ledger) + " WHERE " + names + ")"
			newest = "(SELECT " + builtIn + "count(*)" + names + " AS names, (SELECT " + builtIn + "max(token)" + names +
				" AS newest"
		}
		parts[i] = fmt.Sprintf("SELECT %d AS i, %smin(%s) AS low, %[2]smax(%[3]s) AS high, %s FROM %s", i, builtIn, mark,
			newest, l.quoted(t.rel))
	}
	for _, row := range l.decided("the marks and the ledger", strings.Join(parts, "\nUNION ALL ")) {
		i, err := strconv.Atoi(row[0])
		if err != nil || i < 0 || i >= len(of) {
			l.err = fmt.Errorf("the marks: unexpected row %q", row)
			return
		}
		t, low, high, count, token := of[i], number(row[1]), number(row[2]), number(row[3]), number(row[4])
		if low < 0 {
			l.add(t.Table, l.negativeToken(t, low))
		}
		if high > 0 && high > token && (count > 0 || t.Ledger && isLedger(l, l.ledgerOf(t))) {
			l.add(t.Table, l.highToken(t, high, token))
		}
	}
}

// highToken can't distinguish a ledger that has lost tokens from a stored token that was never issued. Raising the
// ledger is safe in both cases. If the ledger has lost tokens, lowering the stored token lets an older holder write.
func (l *look) highToken(t target, high, newest int64) Finding {
	name := strconv.Quote(t.Resource)
	if t.Key != "" {
		name = strconv.Quote(t.Resource + "/…")
	}
	f := Finding{
		Level: Fault, Code: "wrong-mark",
		Problem: fmt.Sprintf("Table %s has a row that stores token %d, but the newest token of %s in the ledger is "+
			"%d: no holder of an issued token can write it.",
			l.name(t.rel), high, name, newest),
	}
	if high < core.WarnToken {
		f.Remedy = fmt.Sprintf("Raise the ledger to %[1]d, which raises all names, for ever, and is safe whether the "+
			"ledger has lost tokens or this token was never issued: tokens.Store.Repair, sqlfence tokens repair "+
			"--floor %[1]d. Don't lower the stored token: an older holder's write might land.", high)
	} else {
		f.Remedy = "Replace the name, as docs/tokens.md has it: tokens.Store.Rotate, sqlfence tokens rotate. Don't " +
			"raise the ledger to this token: all names would have used up a tenth of their tokens, or more, for ever. " +
			"Don't lower the stored token by itself: an older holder's write might land."
	}
	return f
}

// isLedger reports whether a relation has the columns of a ledger, and the role may read them.
func isLedger(l *look, rel *relation) bool {
	if rel == nil {
		return false
	}
	name, ok := rel.column(l.db, "name")
	token, ok2 := rel.column(l.db, "token")
	return ok && ok2 && name.reads && token.reads && l.db.judge("fence", token).level != Fault
}

// number parses an integer, even if the database writes it as 7.0.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(s, 64)
		n = int64(f)
	}
	return n
}

// negativeToken returns the finding about a negative stored token, written for a seal that was missing (see
// schema.Unseal). Under Sealed, guards and the seal compare the absolute value, and Seal makes the token positive.
func (l *look) negativeToken(t target, low int64) Finding {
	f := Finding{Level: Warning, Code: "wrong-mark",
		Problem: fmt.Sprintf("Table %s has rows that store a token below 0, such as %d", l.name(t.rel), low)}
	if t.Sealed {
		f.Problem += ", as a program stores that takes it for sealed: it counts by its size."
		f.Remedy = Remedies["wrong-seal"] + " That makes them positive."
		return f
	}
	f.Problem += ": every token is newer."
	f.Remedy = "Take the sign away, as the SQL does: a program that took the table for sealed has stored its token's " +
		"negative. Find out what has written them."
	f.SQL = fmt.Sprintf("UPDATE %s SET %s = -%[2]s WHERE %[2]s < 0", l.quoted(t.rel), l.db.Quote(t.FenceColumn))
	return f
}
