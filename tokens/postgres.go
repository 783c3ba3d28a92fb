package tokens

import (
	"database/sql"
	"encoding/json"
	"strings"
	"sync"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	facts "github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// postgres is the dialect of PostgreSQL. Its statements cast their arguments, because PostgreSQL takes an argument
// without a type for text.
var postgres = sync.OnceValue(func() *dialect {
	return &dialect{
		Dialect: pg.Text,
		names:   sqlfence.Postgres,
		server:  pg.Session,

		issue:   issuing(bounded(pg.Text, issuePostgres, onePostgres("$1::text", "$2::bigint"))),
		shared:  sharing(bounded(pg.Text, sharedPostgres, nil)),
		writers: 2, // one statement may wait for the disk while the other is executed
		each: issuingEach(bounded(pg.Text, issuePostgres, sqltext.Fragments{
			"asked": sqltext.Raw("SELECT n AS name FROM " + namesPostgres),
			"count": sqltext.Raw("1"),
			"fit":   throws(pg.Text), "answer": sqltext.Raw("name, token"),
		})),
		reached: bounded(pg.Text,
			`SELECT CASE WHEN held.token < 0 THEN held.token ELSE GREATEST(held.token, base.floor) END
FROM (SELECT {floor} AS floor) AS base LEFT JOIN {ledger} AS held ON held.name = $1::text`, nil),
		adopt:   adopting(render(pg.Text, adoptPostgres)),
		current: render(pg.Text, `SELECT token FROM {ledger} WHERE name = $1::text`),
		page:    pagePostgres,
		ensure: ensuring(render(pg.Text, `INSERT INTO {ledger} (name, token)
SELECT n, 0 FROM `+namesPostgres+`
ON CONFLICT (name) DO NOTHING`)),

		columns: render(pg.Text,
			`SELECT attname, pg_catalog.format_type(atttypid, NULL), attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_catalog.pg_attribute
WHERE attrelid = pg_catalog.to_regclass('{ledger}') AND attnum > 0 AND NOT attisdropped`),
		narrow: "integer",
		// EXPLAIN checks columns, types, the unique index that ON CONFLICT needs, and privileges.
		probe: bounded(pg.Text, "EXPLAIN "+issuePostgres, onePostgres("'books'", "1")),

		keeping: keeping{whole: pg.CreateLedgerFunction, installed: pg.FindLedgerFunction, hidden: render(pg.Text,
			"SELECT 1 FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('{ledger}') AND relrowsecurity")},

		procedures:    pg.CreateTokenProcedures,
		hasProcedures: func() string { return pg.FindProcedures("sqlfence_issue", "sqlfence_adopt") },

		holds: func(_ *facts.Capabilities, held []sqlfence.Token) ([]string, []any) {
			asked := make([]holdRequest, len(held))
			for i, t := range held {
				asked[i] = holdRequest{i, t.Name, t.Value}
			}
			list, _ := json.Marshal(asked) // texts and numbers only: it can't fail
			return []string{holdPostgres()}, []any{string(list)}
		},
		holdsClaim: func(_ *facts.Capabilities, c Claim, key any, _ string, claim int64) ([]string, []any) {
			names := strings.NewReplacer("{of}", c.Table, "{key}", c.Key, "{column}", c.Column)
			return []string{names.Replace(holdClaimPostgres())}, []any{key, claim}
		},
		within: withinPostgres,

		level: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
		begin: []string{
			render(pg.Text, "SELECT {durable}"),
			// Rows that the role can't see would keep their tokens.
			"SELECT pg_catalog.set_config('row_security', 'off', true)",
		},
		lock:        []string{lockPostgres(sqltext.LedgerTable)},
		awaitWrites: []string{render(pg.Text, "SELECT {turn $1::text}")},
		lockRows:    lockPostgres,
		start: bounded(pg.Text, `INSERT INTO {ledger} (name, token)
VALUES ('', GREATEST(pg_catalog.int8mi($1::bigint, {epoch}), 0)), ('`+sqltext.LowerBoundName+`', $1::bigint)
ON CONFLICT (name) DO UPDATE SET token = GREATEST({ledger}.token, excluded.token)`, nil),
		below: render(pg.Text, `SELECT name, token FROM {ledger} WHERE token > 0 AND token < $1::bigint `+
			`AND name NOT IN ('', '`+sqltext.LowerBoundName+`') ORDER BY name`),
		advance: render(pg.Text, `UPDATE {ledger} SET token = $1::bigint `+
			`WHERE token > 0 AND token < $1::bigint AND name <> ''`),
		serve: render(pg.Text, `INSERT INTO {ledger} (name, token) VALUES ('`+sqltext.LowerBoundName+`', $1::bigint)
ON CONFLICT (name) DO UPDATE SET token = GREATEST({ledger}.token, excluded.token)`),
		// {try asked.name} fails while a transaction with a guarded write of the name is open. A row that another
		// session has changed meanwhile is read again when it is locked.
		unused: `SELECT t.name, COALESCE(t.token, 0)
FROM (SELECT asked.name FROM ({names}) AS asked (name) WHERE {try asked.name} OFFSET 0) AS free
JOIN {ledger} AS t ON t.name = free.name FOR UPDATE OF t SKIP LOCKED`,
		listed:  listing("SELECT n FROM " + namesPostgres),
		retires: func(name string) (string, []any) { return render(pg.Text, retiresPostgres), []any{name} },
		retire: retiring(render(pg.Text, `UPDATE {ledger} SET token = $2::bigint
WHERE name = $1::text OR pg_catalog.starts_with(name, pg_catalog.concat($1::text, '/'))`)),
	}
})

const retiresPostgres = `SELECT name, COALESCE(token, 0) FROM {ledger}
WHERE name = $1::text OR pg_catalog.starts_with(name, pg_catalog.concat($1::text, '/')) ORDER BY name`

const namesPostgres = "pg_catalog.json_array_elements_text($1::text::json) AS names(n)"

const pagePostgres = "name > $1::text AND pg_catalog.starts_with(name, $2::text) " +
	"AND name <> '" + sqltext.LowerBoundName + "'"

// onePostgres makes issuePostgres issue count tokens of one name, or no token if fewer are left.
func onePostgres(name, count string) sqltext.Fragments {
	return sqltext.Fragments{"asked": sqltext.Raw("SELECT " + name + " AS name"),
		"count": sqltext.Raw(count), "fit": fits,
		"answer": sqltext.Raw("token")}
}

// issuePostgres issues {count} tokens of each name of {asked}, in order.
//
// {turn asked.name} waits for an advisory lock, the name's turn, which each guarded write under Ledger shares until its
// transaction ends. PostgreSQL grants the turn in the order of the requests, so overlapping writers can't hold off the
// next token for ever, as they could by sharing a lock of the ledger's row.
//
// The lower bound may have risen while the statement waited for its turn. For a name without a token the trigger
// compares the first of the {count} tokens with the lower bound at that time.
const issuePostgres = `INSERT INTO {ledger} (name, token)
SELECT turn.name, pg_catalog.int8pl(turn.floor, {count})
FROM (SELECT asked.name, {turn asked.name}, {durable}, {floor} AS floor,
	pg_catalog.set_config('sqlfence.count', ({count})::text, true) FROM ({asked}) AS asked OFFSET 0) AS turn
WHERE {fit turn.floor <= pg_catalog.int8mi({max}, {count})} AND {seen turn.name}
ON CONFLICT (name) DO UPDATE SET
	token = GREATEST(pg_catalog.int8pl(COALESCE({ledger}.token, 0), {count}), excluded.token)
WHERE {fit COALESCE({ledger}.token, 0) >= 0 AND COALESCE({ledger}.token, 0) <= pg_catalog.int8mi({max}, {count})}
RETURNING {answer}`

// adoptPostgres writes the row even if the stored token is higher, because only then one statement can return the
// stored token.
const adoptPostgres = `INSERT INTO {ledger} (name, token)
SELECT $1::text, $2::bigint FROM (SELECT {turn $1::text}, {durable} OFFSET 0) AS turn
WHERE $2::bigint > {served} OR EXISTS (SELECT FROM {ledger} WHERE name = $1::text AND token > 0)
ON CONFLICT (name) DO UPDATE SET token = GREATEST({ledger}.token, excluded.token)
RETURNING token`

// sharedPostgres issues the requested tokens of each name. It issues none for a name without a token, and none for a
// name with an advisory lock or a row that another transaction has locked: so it waits for no lock and can't deadlock.
// PostgreSQL reads a row again once the row is locked. Above READ COMMITTED sharedPostgres issues no tokens, because
// the snapshot may be older than the row.
const sharedPostgres = `WITH asked AS MATERIALIZED (
	SELECT r.name, r.count, base.floor, base.shared
	FROM (SELECT {floor} AS floor, {durable},
		pg_catalog.starts_with(pg_catalog.current_setting('transaction_isolation'), 'read ') AS shared OFFSET 0) AS base
	CROSS JOIN pg_catalog.json_to_recordset($1::text::json) AS r(name pg_catalog.text, count bigint)
), turn AS MATERIALIZED (
	SELECT * FROM asked WHERE CASE WHEN shared AND floor <= pg_catalog.int8mi({max}, count) THEN {try name} END
), held AS MATERIALIZED (
	SELECT turn.name, pg_catalog.int8pl(GREATEST(COALESCE(l.token, 0), turn.floor), turn.count) AS next
	FROM turn CROSS JOIN LATERAL (SELECT token FROM {ledger} WHERE name = turn.name FOR UPDATE SKIP LOCKED) AS l
	WHERE l.token >= 1 AND l.token <= pg_catalog.int8mi({max}, turn.count)
), issued AS (
	INSERT INTO {ledger} AS t (name, token) SELECT name, next FROM held
	ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE COALESCE(t.token, 0) < excluded.token
	RETURNING name, token
)
SELECT asked.name, asked.shared, issued.token FROM asked LEFT JOIN issued ON issued.name = asked.name`

// A holdRequest is an element of the JSON array that is the argument of the dialect's statement holds.
type holdRequest struct {
	Place int    `json:"place"`
	Name  string `json:"name"`
	Token int64  `json:"token"`
}

// holdPostgres is the statement of [Store.Hold]. For each token, in the order of the array, it calls the function
// through which guards compare a token with the ledger.
var holdPostgres = sync.OnceValue(func() string {
	return render(pg.Text, "SELECT CASE WHEN "+pg.Session.Standby+" THEN "+
		throwHeld(pg.Text, onStandby, "0", "asked.place")+" IS NULL ELSE "+sqltext.LedgerFunction+
		"(asked.name, asked.token, asked.place, '"+holdNonce+"'::pg_catalog.text, '{ledger}'::pg_catalog.regclass) "+
		"END FROM pg_catalog.json_to_recordset($1::text::json) AS asked(place integer, name pg_catalog.text, "+
		"token bigint)")
})

// holdClaimPostgres is the statement of [Store.HoldClaim]. If the row has changed since the transaction's snapshot, FOR
// SHARE reads the row again, or fails. A standby refuses FOR SHARE.
var holdClaimPostgres = sync.OnceValue(func() string {
	return "SELECT CASE WHEN h.n OPERATOR(pg_catalog.=) 1 AND h.claim OPERATOR(pg_catalog.=) $2::bigint THEN true " +
		"ELSE " + throwHeld(pg.Text, otherValue, "0", "h.claim") +
		" IS NULL END FROM (SELECT pg_catalog.count(*) AS n, COALESCE(pg_catalog.max(t.claim), 0) AS claim " +
		"FROM (SELECT r.{column} AS claim FROM {of} AS r " +
		"WHERE r.{key} OPERATOR(pg_catalog.=) $1 FOR SHARE) AS t) AS h"
})

// withinPostgres sends a statement in the transaction of a Hold. LOCK TABLE fails outside of a transaction. Until the
// transaction ends, its lock keeps other sessions from disabling the triggers that the ledger's function relies on.
func withinPostgres(_ *Store, send sender, table, text string, args []any) error {
	err := send("LOCK TABLE " + table + " IN ROW EXCLUSIVE MODE")
	switch {
	case dberr.SQLState(err) == dberr.NoActiveTransaction:
		return errOutside
	case err != nil:
		return err
	}
	return send(text, args...)
}

func lockPostgres(table string) string { return "LOCK TABLE " + table + " IN SHARE ROW EXCLUSIVE MODE" }

// LedgerFunction returns the SQL statement that installs, on PostgreSQL, the function through which guards read the
// ledger, and the ledger's triggers. [Store.Setup] executes it. The statement can be repeated. It needs the powers of
// the table's owner, and on a fenced database [sqlfence.Bypass].
func LedgerFunction() string { return pg.CreateLedgerFunction }
