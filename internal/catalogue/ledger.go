package catalogue

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// checkLedger looks for the ledger of the tables with [sqlfence.Ledger].
func checkLedger(l *look) {
	for i := range l.targets {
		t := l.targets[i]
		if !t.Ledger {
			continue
		}
		ledger := l.ledgerOf(t)
		if ledger == nil {
			l.add(t.Table, l.noLedger(t))
			continue
		}
		seen := func(x target) bool { return x.Ledger && l.ledgerOf(x) == ledger }
		if slices.ContainsFunc(l.targets[:i], seen) {
			continue
		}
		l.checkFit(t.Table, ledger)
	}
	for _, ledger := range l.ledgers {
		if l.opts.Recognise {
			l.checkFit(nil, ledger)
			l.checkLedgerPrivileges(nil, ledger)
		}
	}
	l.checkOtherLedgers()
}

// checkOtherLedgers looks for ledgers that this process's guards don't read, but other processes may use. If an option
// names the ledger's schema, it looks for none, because no session's settings choose the ledger.
func (l *look) checkOtherLedgers() {
	others := l.otherLedgers()
	if len(l.ledgers) == 0 || len(others) == 0 || l.opts.Schema != "" {
		return
	}
	schema, path := l.db.Capabilities().Schema, l.db.Capabilities().Path
	l.add(nil, Finding{
		Level: Warning,
		Code:  "several-ledgers",
		Problem: fmt.Sprintf("Guards ask the ledger in %s %s, which this session finds %s, and there is another "+
			"one in %s: the tokens of one say nothing to the other, so that a stale process's write passes if its "+
			"sessions find another ledger than its successor's.", schema, l.ledgers[0].schema, path,
			strings.Join(others, ", ")),
		Remedy: "Name the one " + schema + " in all processes (sqlfence.WithSchema, sqlfence --schema), raise " +
			"its tokens to the highest of all (tokens.Store.Repair, sqlfence tokens repair), and drop the " +
			"others; leave those of other applications alone.",
	})
}

// otherLedgers returns the schemas of ledgers that guards don't read. On a server that usually serves several
// applications, as MySQL does, only schemas with a registered table count.
func (l *look) otherLedgers() (schemas []string) {
	for _, ledger := range l.others {
		registered := func(t target) bool { return t.rel.schema == ledger.schema }
		if l.db.Capabilities().Application.Is() || slices.ContainsFunc(l.targets, registered) {
			schemas = append(schemas, ledger.schema)
		}
	}
	return schemas
}

func (l *look) noLedger(t target) Finding {
	home, others := l.opts.Schema, l.otherLedgers()
	apart := l.db.ownLedgers() && !t.rel.visible // Setup makes the ledger of the main schema
	if apart {
		home = t.rel.schema
	}
	f := Finding{Level: Fault, Code: missingLedger, Problem: fmt.Sprintf("There is no table %s for the writes of "+
		"table %s, or this role can't see it: all are refused.", l.spell(home, sqltext.LedgerTable), l.name(t.rel))}
	switch {
	case len(others) > 0:
		f.Remedy = fmt.Sprintf("There is one in %s %s: name it (sqlfence.WithSchema, sqlfence --schema), or have "+
			"it found %s. A second one would let stale writes pass.", l.db.Capabilities().Schema,
			strings.Join(others, ", "),
			l.db.Capabilities().Path)
	case !apart:
		f.SQL = sqltext.Place(l.db.Dialect, home, l.db.Capabilities().CreateLedger)
	}
	return f
}

// ledgerOf returns the ledger that a table's guards read; nil if it isn't found.
func (l *look) ledgerOf(t target) *relation {
	for _, ledger := range l.ledgers {
		if !l.db.ownLedgers() || l.db.same(ledger.schema) == l.db.same(t.rel.schema) {
			return ledger
		}
	}
	return nil
}

// checkFit checks the ledger's table. It reports at most one fault, for the first registered table that uses the
// ledger. Without a fault it reports differences from the table that Setup creates.
func (l *look) checkFit(t *Table, ledger *relation) {
	token, hasToken := ledger.column(l.db, "token")
	name, hasName := ledger.column(l.db, "name")
	why, mark := strings.Join(ledger.defects["unfit"], ""), l.db.judge("fence", token)
	switch {
	case !hasName:
		why = "it has no column name"
	case !hasToken:
		why = "it has no column token"
	case name.loose:
		why = "names in it that aren't the same count as equal"
	case mark.level == Fault:
		why = "its column token is of the type " + token.shown + ", and has to be bigint"
	}
	if why != "" {
		l.wrongLedger(t, Fault, "Repair the table so that it is as the file 00001_fencing_tokens of package schema creates it, "+
			"and keep its rows: tokens would begin again at 1.", "The table %s can't be the ledger: %s.", l.name(ledger), why)
		return
	}
	if mark.level == Warning {
		l.wrongLedger(t, Warning, "Make it bigint.", "The column token of table %s is of the type %s: %s.",
			l.name(ledger), token.shown, mark.problem)
	}
	mayLose := ledger.defects["unkept"] // where a function asks the ledger, it has to have the triggers
	if unkept := append(mayLose, l.wrongTriggers(ledger)...); len(unkept) > 0 {
		level, stops, remedy := Warning, "", ""
		if len(mayLose) > 0 {
			level, stops = Fault, " No guarded write of a new pool lands."
		}
		if l.db.ownLedgers() && !ledger.visible {
			remedy = "Open that file by itself, and call tokens.Store.Setup or run sqlfence init --apply."
		}
		l.wrongLedger(t, level, remedy, "Every client that may write table %s can lower a token or lose a name there: "+
			"%s.%s", l.name(ledger), strings.Join(unkept, ", "), stops)
	}
	l.checkIssuers(t, ledger)
	l.checkRoutines(t, ledger)
}

// checkRoutines reports the guards' function, and procedures for other languages, if they differ from those that Setup
// creates. The procedures may be missing.
func (l *look) checkRoutines(t *Table, ledger *relation) {
	const remedy = ", as a role with the powers of the table's owner; drop one of another role, or with other " +
		"parameters, before."
	const other = "The %s %s isn't what Setup of this version creates, or belongs to a role without the powers of the " +
		"owner of table %s: %s."
	for _, name := range ledger.defects["no function"] {
		if len(ledger.defects["unkept"]) == 0 { // else the remedy for the triggers creates it as well
			l.wrongLedger(t, Fault, "", "The function %s of table %s is missing: no guarded write lands.",
				l.spell(ledger.schema, name), l.name(ledger))
		}
	}
	for _, name := range ledger.defects["function"] {
		l.wrongLedger(t, Fault, "Call tokens.Store.Setup, or run sqlfence init --apply"+remedy, other,
			"function", l.spell(ledger.schema, name), l.name(ledger), "no guarded write of a new pool lands, and pools "+
				"that are open, or of another version, may believe it")
	}
	for _, name := range ledger.defects["procedure"] {
		l.wrongLedger(t, Warning, "Call Setup with lease.WithProcedures"+remedy, other, "procedure",
			l.spell(ledger.schema, name), l.name(ledger), "it may issue a token twice, or grant a lease to two")
	}
}

// wrongLedger adds that a ledger isn't as Setup creates it; remedy may be empty.
func (l *look) wrongLedger(t *Table, level slog.Level, remedy, problem string, args ...any) {
	l.add(t, Finding{Level: level, Code: "wrong-ledger", Problem: fmt.Sprintf(problem, args...), Remedy: remedy})
}

// wrongTriggers describes the ledger's triggers that are missing or have a different text, as far as the role sees the
// triggers, and the cascades that fire no trigger.
func (l *look) wrongTriggers(ledger *relation) (wrong []string) {
	for _, x := range l.links {
		if x.id == ledger.id && x.kind == "cascade" && l.db.silentCascades.Is() {
			wrong = append(wrong, "a foreign key is declared "+x.detail+", so that a write to "+
				l.nameOf(x.schema, x.name)+" changes its names or deletes them")
		}
	}
	if len(ledger.triggers) == 0 && ledger.hidesTriggers {
		l.noteDenied("the triggers that keep tokens from falling", "that takes the privilege TRIGGER")
		return wrong
	}
	triggers := l.db.Capabilities().LedgerTriggers
	if ledger.definition.find("without", "rowid") >= 0 {
		triggers = sqltext.WithoutRowID(triggers)
	}
	return append(wrong, ledger.differing(triggers, "Setup")...)
}

// differing describes a ledger's triggers that are missing or differ from the triggers that a method creates.
func (r *relation) differing(triggers []sqltext.Trigger, method string) (wrong []string) {
	for _, t := range triggers {
		if _, there := r.triggers[t.Name]; !there {
			wrong = append(wrong, "the trigger "+t.Name+" is missing")
		} else if t.Differs(r.triggers) {
			wrong = append(wrong, "the trigger "+t.Name+" isn't what "+method+" creates")
		}
	}
	return wrong
}

// checkIssuers checks that the triggers fill in a ledger's columns for the issuer and the time, if the columns exist.
// Columns of a different type belong to the application.
func (l *look) checkIssuers(t *Table, ledger *relation) {
	issuers, lacks := l.db.Capabilities().Issuers, []string(nil)
	for _, own := range issuers.Columns {
		c, _ := ledger.column(l.db, own.Name)
		if !strings.HasPrefix(strings.ToLower(c.shown), own.Type) {
			lacks = append(lacks, own.Name)
		}
	}
	const remedy = "Call tokens.Store.RecordIssuers, or run sqlfence init --issuers --apply."
	if len(lacks) > 0 {
		fires := func(t sqltext.Trigger) bool { return ledger.triggers[t.Name] != "" }
		if slices.ContainsFunc(issuers.Triggers, fires) {
			l.wrongLedger(t, Fault, remedy, "Triggers record in table %s who takes tokens, and it has lost the column %s "+
				"for that: no token can be taken.", l.name(ledger), strings.Join(lacks, ", "))
		}
		return
	}
	wrong := append(ledger.defects["unrecorded"], ledger.differing(issuers.Triggers, "RecordIssuers")...)
	if len(wrong) > 0 && (len(ledger.triggers) > 0 || !ledger.hidesTriggers) {
		l.wrongLedger(t, Warning, remedy, "Table %s says who has taken tokens, and when, and isn't kept up to date in "+
			"that: %s.", l.name(ledger), strings.Join(wrong, ", "))
	}
}
