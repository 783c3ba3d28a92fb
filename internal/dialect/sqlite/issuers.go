package sqlite

import "github.com/sqlfence/sqlfence/internal/sqltext"

// issuers: SQLite knows of no sessions, so that there is no who.
var issuers = sqltext.Issuers{
	Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedAt, Type: "bigint"}},
	Triggers: []sqltext.Trigger{
		sqltext.NewTrigger(sqltext.IssuersPrefix+"update_v1", "AFTER UPDATE OF token ON fencing_tokens",
			recordsIssuer("NEW.token IS NOT OLD.token")),
		sqltext.NewTrigger(sqltext.IssuersPrefix+"insert_v1", "AFTER INSERT ON fencing_tokens",
			recordsIssuer("NEW.token > 0 AND NEW.issued_at IS NULL")),
	},
	Read: "NULL, " + Text.Micros("issued_at"),
}

func recordsIssuer(condition string) string {
	return `WHEN ` + condition + `
BEGIN
	UPDATE fencing_tokens SET issued_at = ` + Text.Now() + ` WHERE name = NEW.name;
END`
}
