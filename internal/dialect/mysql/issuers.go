package mysql

import "github.com/sqlfence/sqlfence/internal/sqltext"

// issuers: who is the account and the host that the session has come from, as bytes, since no text of another
// character set is refused then; what is too long is cut. USER is the session's, also in a trigger.
var issuers = sqltext.Issuers{
	Columns: []sqltext.IssuerColumn{{Name: sqltext.IssuedBy, Type: "varbinary(512)"},
		{Name: sqltext.IssuedAt, Type: "bigint"}},
	Triggers: []sqltext.Trigger{
		sqltext.NewTrigger(sqltext.IssuersPrefix+"update_v1", "BEFORE UPDATE ON fencing_tokens FOR EACH ROW",
			recordsIssuer("NOT (NEW.token <=> OLD.token)")),
		sqltext.NewTrigger(sqltext.IssuersPrefix+"insert_v1", "BEFORE INSERT ON fencing_tokens FOR EACH ROW",
			recordsIssuer("NEW.token > 0 AND NEW.issued_by IS NULL AND NEW.issued_at IS NULL")),
	},
	Read: "issued_by, " + Text.Micros("issued_at"),
}

func recordsIssuer(condition string) string {
	return `BEGIN
	IF ` + condition + ` THEN
		SET NEW.issued_at = ` + started + `,
			NEW.issued_by = LEFT(CAST(CONCAT(USER(), ', connection ', CONNECTION_ID()) AS BINARY), 512);
	END IF;
END`
}
