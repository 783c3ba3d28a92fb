package sqltext

// QuotePostgres writes a name so that PostgreSQL reads just that.
func QuotePostgres(name string) string { return Postgres.Quote(name) }

// QuoteSQLite writes a name so that SQLite reads just that.
func QuoteSQLite(name string) string { return SQLite.Quote(name) }
