package mysql_test

import (
	"errors"
	"regexp"
	"strings"

	"github.com/sqlfence/sqlfence"
)

// A verdict compares the effects on both connections.
type verdict struct {
	*session
	query     string
	caller    caller
	before    map[string]stored
	want, got effect
	forbidden []string // reached rows that the caller may not write
	known     bool     // forbidden has all of them
}

// fault describes the violation, or returns "".
func (v *verdict) fault() string {
	got, want := v.got, v.want
	switch unchanged := show(got.left) == show(v.before); {
	case got.err != nil && !unchanged:
		return "CHANGED, and an error"
	case got.err == nil && v.landed() != "":
		return v.landed()
	case errors.Is(got.err, sqlfence.ErrUnguardable):
		v.tally["refused"]++
	case want.err != nil && got.err == nil && v.mayPass():
	case want.err != nil && got.err == nil:
		return "the bare one fails"
	case want.err != nil && !isTyped(got.err) && number(got.err) != number(want.err):
		return "another error"
	case want.err != nil || !v.known:
		v.tally["errors"]++
	case len(v.forbidden) > 0 && got.err == nil && v.dependsOnThePlan():
	case len(v.forbidden) > 0 && got.err == nil:
		return "nothing was written, in silence"
	case len(v.forbidden) > 0 && !isTyped(got.err) && !v.mayBeRefused():
		return "an error that says nothing"
	case len(v.forbidden) > 0:
		v.tally["forbidden"]++
	case got.err == nil:
		v.tally["written"]++
		return v.differs()
	case v.mayBeRefused():
		v.tally["out of scope"]++
	default:
		return "an error"
	}
	return ""
}

const (
	safeUpdates = 1175 // a write that uses no index, under sql_safe_updates
	notNull     = 1048
)

// mayPass reports whether a guarded statement may succeed although the bare driver's fails: docs/mysql.md lists these
// differences.
func (v *verdict) mayPass() bool {
	switch number(v.want.err) {
	case safeUpdates: // by the plan; MariaDB's of a DELETE with LIMIT and without a bare condition
		return strings.Contains(v.query, "pens") || strings.HasPrefix(v.query, "DELETE") && strings.Contains(v.query, "LIMIT") && !strings.Contains(v.query, "WHERE")
	case notNull: // with a trigger MariaDB stores 0 for a NULL that a joined UPDATE copies
		return strings.HasPrefix(v.query, "UPDATE") && strings.Contains(v.query, "pens p") && (v.policy.sealed || strings.HasPrefix(v.trigger, "BEFORE UPDATE"))
	}
	return false
}

// mayBeRefused reports whether an error is correct although the caller may write all reached rows.
func (v *verdict) mayBeRefused() bool {
	inserts := !strings.HasPrefix(v.query, "UPDATE") && !strings.HasPrefix(v.query, "DELETE")
	switch err := v.got.err; {
	case number(err) == safeUpdates && strings.Contains(v.query, "pens"): // depends on the plan
		return true
	case !isTyped(err):
		return false
	case v.dependsOnThePlan():
		return true
	case v.policy.lacksToken(v.caller, v.newest), inserts && v.policy.key != "", inserts && v.policy.once: // its own row
		return true
	case v.caller.serial >= 0 && errors.Is(err, sqlfence.ErrGone):
		return true
	case strings.HasPrefix(v.query, "DELETE") && strings.Contains(v.query, "LIMIT"):
		for _, row := range v.before { // the guard may check a row beyond the LIMIT
			if v.policy.forbids(v.caller, v.newest, row) != "" {
				return true
			}
		}
	}
	return false
}

// landed describes the forbidden writes that succeeded; "" for none.
func (v *verdict) landed() string {
	p, c := v.policy, v.caller
	for id, row := range v.before {
		now, is := v.got.left[id]
		token, held := c.tokens[p.tokenName(row)]
		switch why := p.forbids(c, v.newest, row); {
		case is && !changes(row, now) && now.mark == row.mark:
		case why != "":
			return "LANDED: row " + id + ": " + why
		case is && p.fence && (!held || now.mark != token):
			return "row " + id + " has another mark"
		case is && p.serial && changes(row, now) && now.serial <= row.serial:
			return "row " + id + " has its old serial"
		case is && p.lock && now.lock != row.lock:
			return "row " + id + " has another lock"
		}
	}
	for id, now := range v.got.left {
		if _, was := v.before[id]; was || !p.fence && !p.ledger {
			continue
		}
		token, held := c.tokens[p.tokenName(now)]
		switch {
		case p.free && (now.mark == 0 || len(id) > 1): // its key doesn't show, or the database has generated it
		case !held:
			return "LANDED: the new row " + id + " has a key without a token"
		case p.ledger && token != v.newest[p.tokenName(now)]:
			return "LANDED: the new row " + id + ": another token in the ledger"
		case p.fence && now.mark != token:
			return "the new row " + id + " has another mark"
		case p.serial && now.serial < 1:
			return "the new row " + id + " has no serial"
		}
	}
	return ""
}

// assignsPens finds an assignment to the other joined table in a SET list.
var assignsPens = regexp.MustCompile(` SET (?:.*, )?p\.(?:grp|price) = `)

// readsAssigned finds an assignment of joined tables that reads an earlier assignment's column.
var readsAssigned = regexp.MustCompile(` SET .*(?:b\.price = .*= b\.price|b\.isbn = .*= b\.isbn)`)

// dependsOnThePlan reports whether the statement's effect depends on the server's plan. A server may join by values
// that the statement has just assigned, or assign all columns at the end; MySQL also does so if it turns a subquery
// into a join. In addition, a new row's generated id differs.
func (v *verdict) dependsOnThePlan() bool {
	_, where, _ := strings.Cut(v.query, " WHERE ")
	joined := strings.Contains(v.query, "pens p") && (v.policy.sealed || assignsPens.MatchString(v.query) || readsAssigned.MatchString(v.query))
	return strings.HasPrefix(v.query, "UPDATE") && (joined || strings.Contains(where, "FROM pens")) || strings.Contains(v.query, "LAST_INSERT_ID")
}

// differs describes the difference to the bare driver's effect, or returns "".
func (v *verdict) differs() string {
	if v.dependsOnThePlan() {
		return ""
	}
	if v.want.pens != v.got.pens {
		return "other pens"
	}
	if len(v.want.left) != len(v.got.left) {
		return "other rows"
	}
	for id, row := range v.want.left {
		if now, is := v.got.left[id]; !is || changes(row, now) {
			return "row " + id + " is another"
		}
	}
	counts := strings.Contains(v.options, "found") && !strings.Contains(v.query, "DUPLICATE") || !strings.Contains(v.query, "UPDATE")
	if counts && v.want.affected != v.got.affected {
		return "other counts"
	}
	return ""
}
