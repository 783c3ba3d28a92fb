package catalogue

import (
	"log/slog"
	"slices"
)

func checkSettings(l *look) {
	if len(l.tables) == 0 && !l.opts.Recognise {
		return
	}
	if l.opts.Standby {
		l.add(nil, Finding{
			Level: Warning,
			Code:  "wrong-server",
			Problem: "The server is a standby or read-only: it may be behind in what was found, and refuses " +
				"guarded writes by an error of its own.",
			Remedy: "Verify the primary, over a connection that no proxy sends to another server.",
		})
	}
	l.db.session(l)
	if l.opts.Leaks {
		l.setting(Warning, "The setting log_bin is off on a node of Galera's: behind a statement that has failed, a "+
			"transaction gives the other nodes what the rows with triggers had changed, so none is committed behind "+
			"a refusal",
			"Set log_bin for all nodes; they read it when they start.", "")
	}
	for i := range l.tables {
		t, rule := &l.tables[i], "Ledger"
		if t.ClaimOf != "" {
			rule = "ClaimOf"
		}
		if t.locksOther() && l.opts.Apart != "" {
			l.add(t, Finding{
				Level: Fault,
				Code:  "wrong-server",
				Problem: rule + " holds only where " + l.opts.Apart + ": writes of table " + t.Registered +
					" are refused.",
				Remedy: "Compare the token in the row, with RowFence alone; docs/servers.md says more.",
			})
		}
	}
}

// locksOther reports whether a write of the table locks a row of another table until the transaction ends.
func (t *Table) locksOther() bool { return t.Ledger || t.ClaimOf != "" }

func (l *look) setting(level slog.Level, problem, remedy, sql string) {
	l.add(nil, Finding{level, "setting", "", problem + ".", remedy, sql})
}

// losesCommits adds the finding that a setting lets a crash lose committed transactions: a crash of the server or, at
// the level Note, only of the whole machine.
func (l *look) losesCommits(level slog.Level, setting, remedy, sql string) {
	what := "server"
	if level == Note {
		what = "machine"
	}
	l.setting(level, "The setting "+setting+" lets a crash of the "+what+
		" lose what was committed before it: writes, and the marks with them", remedy, sql)
}

// idles adds that a transaction may stay open for ever, where writes are compared with the ledger, or with claims.
func (l *look) idles(setting, sql string) {
	locks := slices.ContainsFunc(l.tables, func(t Table) bool { return t.locksOther() })
	if l.settings[setting] == "0" && (locks || l.opts.Recognise && len(l.ledgers) > 0) {
		l.setting(Note, "The setting "+setting+" is 0: a transaction that a paused program leaves open after a "+
			"write under the ledger, or with a claim, holds off the next token or takeover for as long",
			"Set it to the time that a transaction may idle.", sql)
	}
}

func checkWriters(l *look) {
	for _, t := range l.targets {
		f := Finding{Code: "other-writers"}
		switch {
		case t.rel.sealed && len(t.rel.past) > 0:
			f.Problem = "Table " + l.name(t.rel) + " is sealed, but " + firstOf(t.rel.past) +
				" may write past the seal: " + l.db.pastSeals + "."
			f.Remedy = "Take these privileges away from those who only write, and leave them to the role that migrates."
		case !t.rel.sealed && len(t.rel.writers) > 0:
			f.Problem = "Table " + l.name(t.rel) + " can also be written by " + firstOf(t.rel.writers) +
				": what doesn't pass through sqlfence carries no token."
		default:
			continue
		}
		l.add(t.Table, f)
	}
}
