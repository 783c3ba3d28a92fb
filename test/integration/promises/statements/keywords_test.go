package statements_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var keywordStatements = flag.Int("keywords", 800, "how many statements TestKeywordsAsNames runs in each dialect")

// keywordList are words with a meaning in some database, from SQLite's tool/mkkeywordhash.c and PostgreSQL's kwlist.h,
// as far as they occur in statements about rows.
var keywordList = strings.Fields(`abort action after all always analyze and any array as asc asymmetric at attach before
	begin between both by cascade case cast check collate column commit conflict constraint create cross current
	current_date cycle database default deferred delete depth desc detach distinct do each else end escape except exclude
	excluded exists explain fail fetch filter first following for foreign from full generated glob group groups having if ignore
	ilike immediate in index indexed initially inner insert instead intersect interval into is isnull join key last lateral left
	like limit local lock match matched materialized merge natural next no not nothing notnull null nulls of off offset
	old on only operator or order others outer over overlaps overriding partition plan pragma preceding precision primary query
	raise range recursive references regexp reindex release rename replace restrict returning right rollback row rows
	savepoint search select set similar some source symmetric table target temp then ties time to transaction trigger
	truncate unbounded uescape union unique update using vacuum value values varying view virtual when where window with within
	without work xmlparse zone`)

// Columns, aliases, labels, arguments and items of WITH have keywords as names. A fenced statement has the same effect
// as without the fence, all rows that it wrote have the stored token, and with an older token it changes nothing.
func TestKeywordsAsNames(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		k := newKeywords(t, b)
		count := *keywordStatements / 2 // there are two bases of most dialects
		for n := 0; n < count; n += 100 {
			k.table(t, n/100)
			for range min(100, count-n) {
				k.try(t)
			}
			if t.Failed() {
				break
			}
		}
		t.Logf("%d statements that are valid, %d not; %d wrote rows; refused: %v", k.valid, k.invalid, k.wrote, k.refused)
		for reason, example := range k.examples {
			t.Logf("%s\n\t%s", reason, example)
		}
		if k.valid < k.invalid || k.wrote*4 < k.valid {
			t.Errorf("only %d of %d statements are valid, %d write", k.valid, k.valid+k.invalid, k.wrote)
		}
		refused := 0
		for _, n := range k.refused {
			refused += n
		}
		if refused*100 > k.valid*2 {
			t.Errorf("%d of %d refused", refused, k.valid)
		}
	})
}

// keywords writes statements and runs them.
type keywords struct {
	harness.Base
	r              *rand.Rand
	source         string
	plain          *sql.DB
	db             *sql.DB
	columns        []string // words that can name a column
	labels, bare   []string // words that can be a label, with AS and without AS
	aliases, withs []string // words that can be a table's alias with AS, and words that can name an item of WITH

	// The features of the database's statements.
	withWrites, updatesFrom, aliasOfDelete, aliasOfInsert, readsTarget, isNull, isDistinct, whereOfUpsert bool

	used []string // the columns of the table
	args []any    // of the current statement

	valid, invalid, wrote int
	refused               map[string]int
	examples              map[string]string
}

func newKeywords(t *testing.T, b harness.Base) *keywords {
	s := harness.Setting{Base: b, Level: sql.LevelDefault}.Shop(t)
	k := &keywords{Base: b, r: rand.New(rand.NewPCG(uint64(b.Name[1]), 7)), source: s.Source, plain: s.Plain, refused: map[string]int{}, examples: map[string]string{}}
	k.plain.SetMaxOpenConns(1)
	accepts := func(format string, word string) bool {
		for _, query := range strings.Split(strings.ReplaceAll(format, "%", word), ";") {
			if _, err := harness.Returned(k.plain.QueryContext(t.Context(), query)); err != nil {
				return false
			}
		}
		return true
	}
	for _, word := range keywordList {
		if accepts("DROP TABLE IF EXISTS k;CREATE TABLE k (% integer);INSERT INTO k (%) VALUES (1);UPDATE k SET % = % + 1 WHERE 1 < %", word) {
			k.columns = append(k.columns, word)
		}
		for format, list := range map[string]*[]string{
			"SELECT 1 AS %": &k.labels, "SELECT 1 %": &k.bare, "UPDATE pens AS % SET price = 1 WHERE %.id = 0": &k.aliases,
			"WITH % AS (SELECT 1 AS x) SELECT x FROM %": &k.withs,
		} {
			if accepts(format, word) {
				*list = append(*list, word)
			}
		}
	}
	for query, has := range map[string]*bool{
		"WITH w AS (SELECT 1 AS x) UPDATE pens SET price = 1 WHERE id = 0":        &k.withWrites,
		"UPDATE pens SET price = 1 FROM (SELECT 1 AS one_) AS o_ WHERE id = 0":    &k.updatesFrom,
		"DELETE FROM pens AS p WHERE p.id = 0":                                    &k.aliasOfDelete,
		"INSERT INTO pens AS p (id, price) VALUES (0, 0);DELETE FROM pens":        &k.aliasOfInsert,
		"UPDATE pens SET price = (SELECT max(price) FROM pens AS q) WHERE id = 0": &k.readsTarget,
		"SELECT 1 ISNULL":             &k.isNull,
		"SELECT 1 IS DISTINCT FROM 2": &k.isDistinct,
		"INSERT INTO pens (id) VALUES (0) ON CONFLICT (id) DO UPDATE SET price = 1 WHERE true;DELETE FROM pens": &k.whereOfUpsert,
	} {
		*has = accepts(query, "")
	}
	t.Logf("%d columns, %d labels, %d bare labels, %d aliases, %d WITHs", len(k.columns), len(k.labels), len(k.bare), len(k.aliases), len(k.withs))
	return k
}

// table creates a new table books with twelve of the words as columns.
func (k *keywords) table(t *testing.T, n int) {
	k.used = nil
	for _, i := range k.r.Perm(len(k.columns))[:12] {
		k.used = append(k.used, k.columns[i])
	}
	if n%2 == 0 && slices.Contains(k.columns, "end") && !slices.Contains(k.used, "end") {
		k.used[0] = "end"
	}
	harness.MustExec(t, k.plain, "DROP TABLE books")
	columns := "id integer PRIMARY KEY, fence_token bigint, serial_no bigint, locked_by text, locked_at " + k.TimeType() + ", locked_to " + k.TimeType()
	for _, c := range k.used {
		columns += ", " + c + " integer"
	}
	harness.MustExec(t, k.plain, "CREATE TABLE books ("+columns+")")
	for id := 1; id <= 4; id++ {
		values := ""
		for range k.used {
			values += fmt.Sprintf(", %d", k.r.IntN(4))
		}
		harness.MustExec(t, k.plain, fmt.Sprintf("INSERT INTO books (id, fence_token, serial_no, %s) VALUES (%d, 5, 1%s)", strings.Join(k.used, ", "), id, values))
	}
	rules := []sqlfence.Rule{sqlfence.RowFence("fence_token")}
	switch n % 4 {
	case 1:
		rules = append(rules, sqlfence.EditLock("locked_by", "locked_at", "locked_to"))
	case 3:
		rules = append(rules, sqlfence.Serial("serial_no"), sqlfence.Ledger())
		harness.MustExec(t, k.plain, "DELETE FROM fencing_tokens")
		harness.MustExec(t, k.plain, "INSERT INTO fencing_tokens (name, token) VALUES ('books', 9)")
	}
	if k.db != nil {
		if err := k.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	k.db = k.Fenced(t, k.source, harness.Books(rules...))
	k.db.SetMaxOpenConns(1)
}

// An outcome is a statement's rows and the rows in the table after it.
type outcome struct {
	rows, left []string
	marks      []string // the stored tokens of left, in the same order
}

// run runs a statement in a transaction that is rolled back.
func (k *keywords) run(ctx context.Context, db *sql.DB, query string, args []any) (o outcome, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return o, err
	}
	defer tx.Rollback()
	if strings.Contains(query, " RETURNING ") || !k.maybe(100) {
		if o.rows, err = lines(tx.QueryContext(ctx, query, args...)); err != nil {
			return o, err
		}
		slices.Sort(o.rows)
	} else if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return o, err
	}
	if o.left, err = lines(tx.QueryContext(ctx, "SELECT id, "+strings.Join(k.used, ", ")+" FROM books ORDER BY id")); err != nil {
		return o, err
	}
	o.marks, err = lines(tx.QueryContext(ctx, "SELECT fence_token FROM books ORDER BY id"))
	return o, err
}

// lines reads all rows, each as a text.
func lines(rows *sql.Rows, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, v := range values {
			value := *v.(*any)
			if text, ok := value.([]byte); ok {
				value = string(text)
			}
			fmt.Fprint(&b, value, " ")
		}
		all = append(all, b.String())
	}
	return all, rows.Err()
}

// try writes a statement and runs it by the bare driver, with a token, and with an older token.
func (k *keywords) try(t *testing.T) {
	t.Helper()
	query := k.statement()
	rawQuery, args := query, k.args
	if k.IsPgx() {
		query, args = k.pgxArgs(query)
	}
	before, err := k.run(t.Context(), k.plain, "UPDATE pens SET price = 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	want, errRaw := k.run(t.Context(), k.plain, query, args)
	got, err := k.run(harness.Holding(t, 9), k.db, query, args)
	if errRaw != nil {
		if k.invalid++; err == nil {
			t.Errorf("%s\nwithout the fence: %v, with it none", query, errRaw)
		}
		return
	}
	k.valid++
	var refusal *sqlfence.UnguardableError
	switch {
	case errors.As(err, &refusal):
		k.refused[refusal.Reason]++
		k.examples[refusal.Reason] = query
		return
	case err != nil:
		t.Errorf("%s %v\n%v", query, args, err)
		return
	case !slices.Equal(got.rows, want.rows):
		t.Errorf("%s %v\nreturned %q, want %q", query, args, got.rows, want.rows)
	case !slices.Equal(got.left, want.left):
		t.Errorf("%s %v\nleft %q, want %q", query, args, got.left, want.left)
	}
	reached := false // whether the write changes an existing row
	for _, row := range before.left {
		reached = reached || !slices.Contains(want.left, row)
	}
	for i, row := range got.left {
		if !slices.Contains(before.left, row) && got.marks[i] != "9 " {
			t.Errorf("%s %v\nwrote %q and left its mark at %s", query, args, row, got.marks[i])
		}
	}
	if !slices.Equal(before.left, want.left) {
		k.wrote++
	}
	if _, err := k.run(harness.Holding(t, 4), k.db, query, args); reached && !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("%s %v\nwith an older token: %v", rawQuery, args, err)
	}
}

// pgxArgs passes the arguments in one of pgx's ways.
func (k *keywords) pgxArgs(query string) (string, []any) {
	switch k.r.IntN(3) {
	case 0:
		return query, append([]any{pgx.QueryExecModeSimpleProtocol}, k.args...)
	case 1:
		return query, append([]any{pgx.QueryExecModeExec}, k.args...)
	}
	names := pgx.NamedArgs{}
	for i := len(k.args); i > 0; i-- {
		name := k.word(keywordList)
		for names[name] != nil || k.maybe(50) {
			if name = k.word([]string{"case", "end", "as", "when", "from", "where", "returning", "limit", "order", "on"}); names[name] != nil {
				name = k.word(keywordList)
			}
		}
		names[name] = k.args[i-1]
		query = strings.ReplaceAll(query, fmt.Sprintf("$%d::", i), "@"+name+"::")
	}
	return query, []any{names}
}

// The functions below write the statements.
