package session

import (
	"encoding/json"
	"regexp"
	"strings"

	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Postgres is PostgreSQL.
var Postgres Dialect = postgres{}

type postgres struct{}

func (postgres) text() sqltext.Dialect { return pg.Text }

// canary: the start of a statement is that of its transaction only where it stands alone. All facts are in
// the text, which PostgreSQL quotes in full.
func (d postgres) canary(w *wanted, inTx bool) string {
	unless := ""
	if !inTx {
		unless = " WHEN pg_catalog.timestamptz_ne(pg_catalog.now(), pg_catalog.statement_timestamp()) THEN false"
	}
	return "SELECT 1 FROM (SELECT 1 AS n) AS q WHERE CASE WHEN pg_catalog.int8le(q.n, 0) THEN true" + unless + " ELSE " + raising(d.text(), d.facts(w)) + " IS NOT NULL END"
}

// facts is an expression of type json.
func (d postgres) facts(w *wanted) string {
	function, sealed := "NULL", "NULL"
	if w.function {
		function = "(" + sqltext.Place(d.text(), w.home, pg.FindLedgerFunction) + ")"
	}
	if seals := d.findSeals(w); seals != "" {
		sealed = "(SELECT pg_catalog.json_agg(s.n) FROM (" + seals + ") AS s)"
	}
	return "pg_catalog.json_build_object('version', pg_catalog.version(), 'function', " + function + ", 'sealed', " + sealed + ")"
}

func (d postgres) findSeals(w *wanted) string {
	text := d.text()
	return w.eachSeal(func(index string, name Name) string {
		table := text.Quote(name.Table)
		if name.Schema != "" {
			table = text.Quote(name.Schema) + "." + table
		}
		return "SELECT " + index + " AS n FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid = pg_catalog.to_regclass(" + text.Text(table) + ")" +
			" AND g.tgname = '" + sqltext.SealTrigger + "' AND g.tgenabled IN ('O', 'A')"
	})
}

func (d postgres) readProof(w *wanted, detail string) error {
	var facts struct {
		Version, Function string
		Sealed            []int
	}
	if err := json.NewDecoder(strings.NewReader(detail)).Decode(&facts); err != nil {
		return errNoFacts
	}
	w.facts.Version, w.schema = facts.Version, facts.Function
	for _, i := range facts.Sealed {
		w.foundSeal(i)
	}
	return nil
}

func (d postgres) questions(w *wanted) []string {
	if w.proven || !w.server && !w.function && len(w.sealed) == 0 {
		return nil
	}
	return []string{"SELECT " + d.facts(w)}
}

func (d postgres) read(w *wanted, row []string) {
	if len(row) > 0 {
		_ = d.readProof(w, row[0])
	}
}

func (postgres) version() string { return "SELECT pg_catalog.version()" }

// postgresUnlike are servers that speak PostgreSQL's protocol, and have locks or an isolation of their own.
var postgresUnlike = []namedServer{
	{"cockroachdb", "CockroachDB"}, {"-yb-", "YugabyteDB"}, {"redshift", "Redshift"}, {"greenplum", "Greenplum"}, {"cloudberry", "Cloudberry"},
	{"materialize", "Materialize"}, {"risingwave", "RisingWave"}, {"cratedb", "CrateDB"}, {"opengauss", "openGauss"}, {"gaussdb", "GaussDB"},
	{"postgres-xl", "Postgres-XL"}, {"postgres-xc", "Postgres-XC"}, {"polardb", "PolarDB"},
}

// postgresItself is how PostgreSQL's own code says its version, also where others build it.
var postgresItself = regexp.MustCompile(`^PostgreSQL [0-9.]+(devel|alpha[0-9]+|beta[0-9]+|rc[0-9]+)?([ ,(]|$)`)

func (postgres) unlike(f *Facts) string {
	if name := named(postgresUnlike, f.Version); name != "" {
		return name
	}
	if postgresItself.MatchString(f.Version) {
		return ""
	}
	name, _, _ := strings.Cut(f.Version, " ")
	return name
}

func (postgres) errorEndsTx() bool { return true }

// hasSettings: package rewrite refuses what an encoding would read otherwise, and the drivers write
// UTF-8 or nothing.
func (postgres) hasSettings() bool { return false }

func (postgres) hasCharset() bool { return false }

func (postgres) hasCounts() bool { return false }

func (postgres) asksInTx() bool { return true }
