package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// together is how many tables one query reads.
const together = 100

// checkRows reads the marks in the rows, and compares them with the ledger. The marks are read
// first: what is issued and written meanwhile raises the ledger before the mark.
func checkRows(l *look) error {
	if !l.opts.Rows {
		return nil
	}
	var marked []target
	for _, t := range l.targets {
		c, ok := t.rel.column(l.db, t.Fence)
		switch {
		case t.rel.remote: // the other server may be away
		case t.Fence == "" || !ok || l.db.mark(c).severity == Fault && l.db.mark(c).problem != "":
		case !c.reads:
			l.unseen("the marks of table "+l.name(t.rel), "no privilege to SELECT its fence column")
		default:
			marked = append(marked, t)
		}
	}
	for chunk := range slices.Chunk(marked, together) {
		if err := l.checkMarks(chunk); err != nil {
			return err
		}
	}
	return nil
}

// checkMarks compares the marks of some tables with the ledger.
func (l *look) checkMarks(of []target) error {
	marks, err := l.extremes(of, func(t target) (string, bool) {
		mark := l.db.Quote(t.Fence)
		return "min(" + mark + "), max(" + mark + ") FROM " + l.quoted(t.rel), true
	})
	if err != nil {
		return err
	}
	newest, err := l.extremes(of, func(t target) (string, bool) {
		ledger := l.ledgerOf(t)
		if !isLedger(l, ledger) {
			return "", false
		}
		names := "name = " + l.db.Text(t.Resource)
		if t.Key != "" {
			prefix := t.Resource + "/"
			names = "substr(name, 1, " + strconv.Itoa(l.db.length(prefix)) + ") = " + l.db.Text(prefix)
		}
		return "count(*), max(token) FROM " + l.quoted(ledger) + " WHERE " + names, true
	})
	if err != nil {
		return err
	}
	for i, t := range of {
		low, high := marks[i][0], marks[i][1]
		if low < 0 {
			l.add(t.Table, l.negativeMark(t, low))
		}
		count, token := newest[i][0], newest[i][1]
		if high > 0 && high > token && (count > 0 || t.Ledger && isLedger(l, l.ledgerOf(t))) {
			l.add(t.Table, Finding{
				Severity: Warning, Code: "mark-above-ledger",
				Problem: fmt.Sprintf("Table %s has a row with the mark %d, but the newest token of %s in the ledger is %d: nobody with an issued token can write it.",
					l.name(t.rel), high, l.tokensOf(t), token),
				Remedy: fmt.Sprintf("Call tokens.Store.Repair with %d if the ledger has lost tokens; if the mark was never issued, lower it under Bypass.", high),
			})
		}
	}
	return nil
}

func (l *look) tokensOf(t target) string {
	if t.Key != "" {
		return strconv.Quote(t.Resource + "/…")
	}
	return strconv.Quote(t.Resource)
}

// isLedger reports whether a relation has the columns of a ledger, and the role may read them.
func isLedger(l *look, rel *relation) bool {
	if rel == nil {
		return false
	}
	name, ok := rel.column(l.db, "name")
	token, ok2 := rel.column(l.db, "token")
	return ok && ok2 && name.reads && token.reads && l.db.mark(token).severity != Fault
}

// extremes asks for two numbers of each table, in one query; select is what stands behind
// SELECT. NULL, and a table without a question, are 0.
func (l *look) extremes(of []target, selects func(target) (string, bool)) ([][2]int64, error) {
	found := make([][2]int64, len(of))
	var parts []string
	for i, t := range of {
		if text, ok := selects(t); ok {
			parts = append(parts, fmt.Sprintf("SELECT %d, %s", i, text))
		}
	}
	if len(parts) == 0 {
		return found, nil
	}
	rows, err := l.rows("the marks and the ledger", strings.Join(parts, "\nUNION ALL "))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		i, err := strconv.Atoi(row[0])
		if err != nil || i < 0 || i >= len(of) {
			return nil, fmt.Errorf("the marks: unexpected row %q", row)
		}
		for k := range 2 {
			found[i][k] = number(row[k+1])
		}
	}
	return found, nil
}

// number reads an integer, also one that the database writes as 7.0.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(s, 64)
		n = int64(f)
	}
	return n
}

// negativeMark: by the guards and the seal of a table with Sealed it counts by its size. Seal takes the sign away.
func (l *look) negativeMark(t target, low int64) Finding {
	f := Finding{Severity: Warning, Code: "negative-mark", Problem: fmt.Sprintf("Table %s has rows whose mark is below 0, such as %d", l.name(t.rel), low)}
	if t.Sealed {
		f.Problem += ", as a program stores that takes it for sealed: it counts by its size."
		f.Remedy = sealAgain + " That makes them positive."
		return f
	}
	f.Problem += ": every token is newer."
	f.Remedy = "Give them the newest token's mark, or 0, and find out what has written them."
	f.SQL = fmt.Sprintf("UPDATE %s SET %s = 0 WHERE %[2]s < 0", l.quoted(t.rel), l.db.Quote(t.Fence))
	return f
}
