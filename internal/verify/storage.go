package verify

// checkStorage looks at what registered names stand for that isn't an ordinary table.
func checkStorage(l *look) error {
	for _, t := range l.targets {
		switch t.rel.kind {
		case "table", "partitioned table":
		case "foreign table":
			t.rel.remote = true
			l.add(t.Table, Finding{
				Severity: Warning,
				Code:     "foreign-table",
				Problem:  "The registered name " + l.name(t.rel) + " is a foreign table, whose rows are another server's: what is written there passes neither a guard nor a seal.",
				Remedy:   "Connect to that server, and register the table there.",
			})
			continue
		default:
			l.add(t.Table, Finding{
				Severity: Warning,
				Code:     "not-a-table",
				Problem:  "The registered name " + l.name(t.rel) + " is a " + t.rel.kind + ": its rows are those of other tables, which can be written without it.",
				Remedy:   "Register the tables behind it.",
			})
			continue
		}
		if j := l.db.storage(l, t.rel); j.problem != "" {
			l.add(t.Table, Finding{
				Severity: j.severity,
				Code:     "storage",
				Problem:  "The table " + l.name(t.rel) + " " + j.problem + ".",
				Remedy:   j.remedy,
				SQL:      j.sql,
			})
		}
	}
	return nil
}
