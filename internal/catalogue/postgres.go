package catalogue

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sqlfence/sqlfence/internal/dialect"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/dialect/postgres/sealsql"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// Postgres is PostgreSQL.
var Postgres = newDatabase(dialect.Postgres, Database{
	same:   func(name string) string { return name },
	length: utf8.RuneCountInString,
	user:   "text",

	silentCascades: fact.No,
	refusesViews:   fact.Yes,

	relations:   relationsPostgres,
	queries:     queriesPostgres,
	tableNames:  func(*look) string { return postgresTables + ` ORDER BY 1` },
	fencedNames: func(*look) string { return postgresTables + postgresFenced },
	judge:       judgePostgres,
	storage:     storagePostgres,
	session:     sessionPostgres,
	seal:        sealPostgres,
	pastSeals:   "its owner may switch the triggers off, and the privilege TRIGGER creates others behind them",
	alter: func(table, column, declare string) string {
		typ, _, _ := strings.Cut(declare, " ")
		return "ALTER TABLE " + table + " ALTER COLUMN " + column + " TYPE " + typ + " USING " + column + "::" + typ
	},
})

func relationsPostgres(l *look, names []string) (found []*relation) {
	kinds := map[string]string{"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view",
		"f": "foreign table"}
	storages := map[string]string{"u": "unlogged", "t": "temporary"}
	for _, r := range l.rows("the tables", postgresRelations+l.db.texts(names)+") ORDER BY 2, 3") {
		found = append(found, &relation{id: r[0], schema: r[1], name: r[2], visible: r[3] == "true",
			kind: kinds[r[4]], storage: storages[r[5]], deletes: r[6] == "true", partition: r[7] == "true"})
	}
	return found
}

func queriesPostgres(l *look) []query {
	oids := func(of []*relation) string {
		list := []string{"0"}
		for _, rel := range of {
			list = append(list, rel.id)
		}
		return strings.Join(list, ", ")
	}
	fill := strings.NewReplacer("{asked}", oids(l.queried()), "{of}", oids(l.guarded()), "{ledgers}", oids(l.ledgers),
		"{words}", l.db.texts(l.codeWords()),
		"{trigger}", pg.LedgerTriggerAsCreated, "{recorded}", pg.IssuersAsCreated, "{named}", pg.LedgerFunctionIsNamed,
		"{turns}", pg.LedgerTurnsIsNamed, "{function}", pg.LedgerFunctionAsCreated,
		"{procedures}", l.db.texts(slices.Sorted(maps.Keys(pg.ProcedureHashes))),
		"{procedure}", pg.ProcedureAsCreated()).Replace
	all := []query{
		{"the columns", fill(postgresColumns), hearColumn},
		{"the indexes", fill(postgresKeys), hearKey},
		{"the views", fill(postgresViews), hearView},
		{"the foreign keys, partitions and rules", fill(postgresLinks), readPostgresLink},
		{"the functions", fill(postgresCode), hearCode},
		{"the ledger", fill(postgresLedger), hearLedger},
		{"the settings", fill(postgresSettings), hearSetting},
		{"the privileges", fill(postgresGrantees), hearPostgresGrantee},
	}
	if seals := postgresSeals(l); seals != "" {
		all = append(all, query{"the seals", seals, hearSeal})
	}
	return all
}

// readPostgresLink adds a row of postgresLinks to l.links, except for a rule that doesn't write to the table, and for a
// foreign table behind a view that is read-only.
func readPostgresLink(l *look, r []string) {
	rel, last := l.relation(r[1]), r[5]
	switch r[0] {
	case "rule":
		b := newBody(l.db, code{body: last})
		if !b.writes(rel) && (b.hides == "" || !b.names(rel)) {
			return
		}
	case "foreign table":
		rel.remote = true
		if last != "true" {
			return
		}
	}
	if r[0] == "rule" || r[0] == "own rule" || r[0] == "subscription" {
		r[4] = l.quoteIfNeeded(r[4])
	}
	readLink(l, r)
}

func hearPostgresGrantee(l *look, r []string) {
	rel := l.relation(r[0])
	if r[2] == "true" {
		rel.writers = append(rel.writers, r[1])
	}
	if r[3] == "true" {
		rel.past = append(rel.past, r[1])
	}
}

func judgePostgres(role string, c column) judgement {
	integers, texts := []string{"int2", "int4", "int8"}, []string{"int2", "int4", "int8", "text", "varchar", "uuid"}
	types := map[string][]string{"fence": integers, "serial": integers, "claim": integers, "key": texts, "user": texts,
		"time": {"timestamptz"}}
	fits := slices.Contains(types[role], c.typ)
	switch {
	case role == "fence" && fits && c.typ != "int8":
		return warning("a token beyond its range can't be stored, and after a failover or a restore all are")
	case role == "key" && (c.loose || c.typ == "citext"):
		return warning("texts that aren't the same count as equal, so that one row may have several tokens")
	case fits:
		return fine
	case role == "key":
		return warning("it may store or print a value in another way than the token's name has it; a key is an " +
			"integer, a text or a UUID")
	case role == "time":
		return defect("the time of a lock is a timestamptz")
	case role == "user":
		return warning("the holder of a lock is a text or an integer")
	}
	return defect("the guard compares integers, so that every write is refused")
}

func storagePostgres(l *look, rel *relation) judgement {
	switch rel.storage {
	case "unlogged":
		return judgement{Warning, "is UNLOGGED: a crash of the server empties it, and its marks are gone",
			"Make it an ordinary table.",
			"ALTER TABLE " + l.quoted(rel) + " SET LOGGED"}
	case "temporary":
		return temporary
	}
	return fine
}

var temporary = judgement{Warning, "is a temporary one of this session: others have another table by the name",
	"Register it with its schema, or name the temporary table otherwise.", ""}

func sessionPostgres(l *look) {
	if l.settings["synchronous_commit"] == "off" {
		l.losesCommits(Warning, "synchronous_commit = off", "Turn it on for the roles that write under tokens.",
			"SET synchronous_commit = on")
	}
	if l.settings["fsync"] == "off" { // a crash of the machine, not of the server alone
		l.losesCommits(Note, "fsync = off", "Turn it on for the server.", "ALTER SYSTEM SET fsync = on")
	}
	if slices.ContainsFunc(l.tables, func(t Table) bool { return t.Sealed }) {
		const problem = "The setting session_replication_role = replica, which switches off foreign keys and all " +
			"triggers but those of seals and of the ledger, is that of "
		const remedy = "Leave it at origin, but for a replication or a restore of what was fenced."
		if l.settings["session_replication_role"] == "replica" {
			l.setting(Warning, problem+"the session", remedy, "SET session_replication_role = origin")
		}
		if who := l.settings["replicas"]; who != "" {
			l.setting(Warning, problem+who, remedy, "")
		}
	}
	l.idles("idle_in_transaction_session_timeout", "ALTER ROLE "+l.applicationRole()+
		" SET idle_in_transaction_session_timeout = '1min'")
}

// applicationRole returns as SQL the role that the application connects as, or a placeholder if it can't be inferred.
// In a superuser's session the application is the only other role that may write, unless that role owns the tables. In
// any other session the application is the session's role, if no other role may write.
func (l *look) applicationRole() string {
	var others []string
	owners := false
	for _, t := range l.targets {
		for _, role := range t.rel.writers {
			switch {
			case slices.Contains(t.rel.past, role):
				owners = true
			case !slices.Contains(others, role):
				others = append(others, role)
			}
		}
	}
	super := l.settings["superuser"] == "true"
	switch {
	case super && len(others) == 1 && others[0] != "PUBLIC":
		return l.db.Quote(others[0])
	case !super && len(others) == 0 && !owners && len(l.targets) > 0:
		return cmp.Or(l.settings[ownRole], setuperr.Role)
	}
	return setuperr.Role
}

// postgresSeals is a query for the parts of the tables' seals; empty if there is no table.
func postgresSeals(l *look) string {
	var queries []string
	for _, t := range l.targets {
		if !strings.HasSuffix(t.rel.kind, "table") || t.rel.kind == "foreign table" {
			continue
		}
		table := t.sealed()
		var functions []string
		for _, f := range sealsql.Functions(table) {
			row := []string{l.db.Text(f.Name), l.db.Text(f.Takes()), strconv.FormatBool(f.Definer()), f.Body()}
			functions = append(functions, "("+strings.Join(row, ", ")+")")
		}
		source := "SELECT c.oid, n.nspname::pg_catalog.text, c.relkind = 'p' FROM pg_catalog.pg_class AS c JOIN " +
			"pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = " + t.rel.id
		queries = append(queries, strings.NewReplacer("{id}", l.db.Text(t.rel.id),
			"{wanted}", sealsql.Wanted(table, source), "{functions}", strings.Join(functions, ", "),
			"{ledger name}", l.db.Text(sealsql.LedgerName(l.opts.Schema)),
			"{column}", l.db.Text(t.column())).Replace(postgresSeal))
	}
	return strings.Join(queries, "\nUNION ALL ")
}

func sealPostgres(_ *look, t target) (s seals, has bool) {
	has = slices.ContainsFunc(t.rel.seal, func(r []string) bool { return r[0] == "has" })
	for _, r := range t.rel.seal {
		kind, name, wants, is, problem := r[0], r[1], r[2], r[3], r[4]
		switch {
		case !has || s.problem != "":
		case kind == "late":
			s.problem, s.remedy = "the trigger "+name+" "+problem, "Give the trigger a name that is sorted before "+
				sqltext.SealTrigger+"."
		case problem != "":
			s.problem = "its " + kind + " " + name + " " + problem
		case is != wants:
			s.shape = differs("its "+kind+" "+name, wants, is)
		}
	}
	return s, has
}
