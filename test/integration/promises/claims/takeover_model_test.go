package claims_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/fencepgx"
	"github.com/sqlfence/sqlfence/internal/test/random"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A claimTable is a table with claims, as the model has it. Its rows are claims by key: nil is NULL.
type claimTable struct {
	name, key string
	keys      []string // keys of the rows that may exist
	text      bool     // the key column is a text
	rows      map[string]*claimRow
}

type claimRow struct {
	claim *int64
	state string
}

func (r *claimRow) current() int64 {
	if r.claim == nil {
		return 0
	}
	return *r.claim
}

// picked are the jobs that table picks names.
var picked = []string{"1", "2", "3"}

func newClaimTables() []*claimTable {
	return []*claimTable{
		{name: "jobs", key: "id", keys: []string{"1", "2", "3", "4", "5"}, rows: map[string]*claimRow{}},
		{name: "named", key: "name", text: true, keys: []string{"a", "a:1", "o'neill", `"q\`, "é"}, rows: map[string]*claimRow{}},
	}
}

// An act is a statement's effect on an existing row.
type act struct {
	key     string
	raises  bool // the write assigns the claim
	claim   *int64
	deletes bool
	state   string // empty if the state doesn't change
}

// A claimCase is a statement with the context's claims and the expected result.
type claimCase struct {
	kind    string
	query   string
	args    []any
	table   *claimTable
	acts    []act
	added   map[string]*claimRow
	needs   bool // writes rows without increasing their claims
	deletes bool // has an arm that deletes
	over    bool // WithTakeover
	tokens  []sqlfence.Token
	returns bool // RETURNING can be added
	other   func(c *claimCase) []error
}

// presented returns the value of the context's token of a row.
func (c *claimCase) presented(key string) (value int64, ok bool) {
	for _, token := range c.tokens {
		if token.Name == c.table.name+"/"+key {
			return token.Value, true
		}
	}
	return 0, false
}

// refusals returns the errors of which the statement must have one, or none if the statement must succeed.
func (c *claimCase) refusals() (all []error) {
	if c.other != nil {
		return c.other(c)
	}
	any := slices.ContainsFunc(c.tokens, func(token sqlfence.Token) bool { return strings.HasPrefix(token.Name, c.table.name+"/") })
	switch {
	case c.over && c.deletes:
		return []error{sqlfence.ErrUnguardable}
	case c.needs && !c.over && !any:
		return []error{sqlfence.ErrNoFence}
	}
	for i := range c.acts {
		if err := c.refusal(&c.acts[i]); err != nil {
			all = append(all, err)
		}
	}
	return all
}

// refusal is the rule for one row: each claim of the row in the context is compared.
func (c *claimCase) refusal(a *act) error {
	current := c.table.rows[a.key].current()
	token, presents := c.presented(a.key)
	takes := a.raises || c.over
	switch {
	case !takes && !presents:
		return sqlfence.ErrOutOfScope
	case !takes && token != current, presents && token < current:
		return sqlfence.ErrStale
	case presents && token > current:
		return sqlfence.ErrNotIssued
	case a.raises && (a.claim == nil || *a.claim <= current):
		return sqlfence.ErrConflict
	}
	return nil
}

// apply makes the statement's changes in the model.
func (c *claimCase) apply() {
	for _, a := range c.acts {
		row := c.table.rows[a.key]
		switch {
		case a.deletes:
			delete(c.table.rows, a.key)
			continue
		case a.raises:
			row.claim = a.claim
		case c.over:
			next := row.current() + 1
			row.claim = &next
		}
		if a.state != "" {
			row.state = a.state
		}
	}
	for key, row := range c.added {
		c.table.rows[key] = row
	}
}

// A claimGenerator writes random statements for one database.
type claimGenerator struct {
	*rand.Rand
	d      sqlfence.Dialect
	tables []*claimTable
	c      *claimCase
	plain  bool // the statement takes no arguments
}

// arg writes a value as a placeholder or as a constant.
func (g *claimGenerator) arg(v any) string {
	if !g.plain && g.IntN(2) == 0 {
		return g.bind(v)
	}
	if text, ok := v.(string); ok {
		if g.d == sqlfence.MySQL {
			text = strings.ReplaceAll(text, `\`, `\\`)
		}
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return fmt.Sprint(v)
}

func (g *claimGenerator) bind(v any) string {
	g.c.args = append(g.c.args, v)
	if g.d == sqlfence.Postgres {
		return fmt.Sprintf("$%d", len(g.c.args))
	}
	return "?"
}

func (g *claimGenerator) keyArg(key string) string {
	if g.c.table.text {
		return g.arg(key)
	}
	var n int64
	fmt.Sscan(key, &n)
	return g.arg(n)
}

func (g *claimGenerator) pick() string { return g.c.table.keys[g.IntN(len(g.c.table.keys))] }

func (g *claimGenerator) state() string { return fmt.Sprintf("s%d", g.IntN(4)) }

// where writes a condition, and returns the keys of the rows for which it holds.
func (g *claimGenerator) where(qualifier string) (text string, keys []string) {
	t := g.c.table
	key, a, b, state, n := qualifier+t.key, g.pick(), g.pick(), g.state(), g.Int64N(5)
	var meets func(k string, r *claimRow) bool
	form := g.IntN(10)
	if t.text && (form == 4 || form == 8) {
		form = 1
	}
	switch form {
	case 0, 1:
		text = key + " = " + g.keyArg(a)
		meets = func(k string, _ *claimRow) bool { return k == a }
	case 2:
		text = key + " IN (" + g.keyArg(a) + ", " + g.keyArg(b) + ")"
		meets = func(k string, _ *claimRow) bool { return k == a || k == b }
	case 3:
		if t.text {
			text = key + " = lower(" + g.keyArg(a) + ")"
		} else {
			text = key + " = " + g.keyArg(a) + " + 0"
		}
		meets = func(k string, _ *claimRow) bool { return k == a }
	case 4:
		text = key + " IN (SELECT job FROM picks WHERE job > " + g.arg(n) + ")"
		meets = func(k string, _ *claimRow) bool { return slices.Contains(picked, k) && k > fmt.Sprint(n) }
	case 5:
		text = qualifier + "state = " + g.arg(state)
		meets = func(_ string, r *claimRow) bool { return r.state == state }
	case 6:
		text = qualifier + "attempt >= " + g.arg(n)
		meets = func(_ string, r *claimRow) bool { return r.claim != nil && *r.claim >= n }
	case 7:
		text = qualifier + "attempt IS NULL OR " + key + " = " + g.keyArg(a)
		meets = func(k string, r *claimRow) bool { return r.claim == nil || k == a }
	case 8:
		text = key + " = (SELECT max(job) FROM picks)"
		meets = func(k string, _ *claimRow) bool { return k == "3" }
	default:
		return "", t.present(func(string, *claimRow) bool { return true })
	}
	return " WHERE " + text, t.present(meets)
}

// present returns the keys of the existing rows for which meets returns true.
func (t *claimTable) present(meets func(string, *claimRow) bool) (keys []string) {
	for _, key := range t.keys {
		if row := t.rows[key]; row != nil && meets(key, row) {
			keys = append(keys, key)
		}
	}
	return keys
}

// value writes a value for the claim, and returns the function that computes it for a row.
func (g *claimGenerator) value(qualifier string) (text string, of func(*claimRow) *int64) {
	column, n := qualifier+"attempt", g.Int64N(4)-1
	is := func(v int64) *int64 { return &v }
	switch g.IntN(9) {
	case 0, 1:
		return column + " + " + fmt.Sprint(n), func(r *claimRow) *int64 {
			if r.claim == nil {
				return nil
			}
			return is(*r.claim + n)
		}
	case 2, 3:
		return "COALESCE(" + column + ", 0) + 1", func(r *claimRow) *int64 { return is(r.current() + 1) }
	case 4, 5:
		to := g.c.table.rows[g.pick()]
		if to == nil {
			to = new(claimRow)
		}
		v := max(to.current()+n, 0)
		return g.arg(v), func(*claimRow) *int64 { return is(v) }
	case 6:
		return "(SELECT max(job) FROM picks)", func(*claimRow) *int64 { return is(3) }
	case 7:
		return "CASE WHEN " + column + " > 2 THEN " + column + " + 1 ELSE 3 END", func(r *claimRow) *int64 {
			if r.current() > 2 {
				return is(r.current() + 1)
			}
			return is(3)
		}
	}
	return "NULL", func(*claimRow) *int64 { return nil }
}

// set returns a SET list that may assign the claim, and the function that applies the list to the rows with the keys.
// target qualifies the assigned columns, and qualifier the read ones.
func (g *claimGenerator) set(target, qualifier string, excluded func(key string) *int64) (text string, does func(keys []string)) {
	var items []string
	state, raises := "", g.IntN(3) > 0
	var of func(key string) *int64
	beforeClaim := g.IntN(2) == 0
	setState := func() {
		if state = ""; !raises || g.IntN(2) == 0 {
			state = g.state()
			items = append(items, target+"state = "+g.arg(state))
		}
	}
	if beforeClaim {
		setState()
	}
	if raises {
		var value string
		if excluded != nil && g.IntN(3) == 0 {
			if of, value = excluded, "excluded.attempt"; g.d == sqlfence.MySQL {
				value = "VALUES(attempt)"
			}
		} else {
			var by func(*claimRow) *int64
			value, by = g.value(qualifier)
			of = func(key string) *int64 { return by(g.c.table.rows[key]) }
		}
		items = append(items, target+"attempt = "+value)
	}
	if !beforeClaim {
		setState()
	}
	g.c.needs = g.c.needs || !raises
	return strings.Join(items, ", "), func(keys []string) {
		for _, key := range keys {
			a := act{key: key, raises: raises, state: state}
			if raises {
				a.claim = of(key)
			}
			g.c.acts = append(g.c.acts, a)
		}
	}
}

// next writes a statement.
func (g *claimGenerator) next() *claimCase {
	t := g.tables[0]
	if g.IntN(4) == 0 {
		t = g.tables[1]
	}
	g.c = &claimCase{table: t, added: map[string]*claimRow{}, over: g.IntN(4) == 0}
	g.plain = g.IntN(3) == 0
	kinds := []func(){g.update, g.update, g.upsert, g.upsert, g.delete, g.insert}
	if !t.text {
		kinds = append(kinds, g.joined, g.results)
	}
	if g.d == sqlfence.Postgres {
		kinds = append(kinds, g.with)
		if !t.text {
			kinds = append(kinds, g.merge, g.both)
		}
	}
	kinds[g.IntN(len(kinds))]()
	g.present()
	return g.c
}

// present adds tokens of some rows to the context, mostly of rows that the statement reaches.
func (g *claimGenerator) present() {
	names := map[string]int64{}
	for range g.IntN(4) {
		t := g.c.table
		if g.IntN(8) == 0 {
			t = g.tables[g.IntN(len(g.tables))]
		}
		key := t.keys[g.IntN(len(t.keys))]
		if len(g.c.acts) > 0 && t == g.c.table && g.IntN(4) > 0 {
			key = g.c.acts[g.IntN(len(g.c.acts))].key
		}
		row := t.rows[key]
		if row == nil {
			row = new(claimRow)
		}
		value := row.current()
		switch g.IntN(8) {
		case 0, 1:
			value--
		case 2:
			value++
		case 3:
			value = 1 + g.Int64N(20)
		}
		if value > 0 {
			names[t.name+"/"+key] = value
		}
	}
	for name, value := range names {
		g.c.tokens = append(g.c.tokens, sqlfence.Token{Name: name, Value: value})
	}
	sort.Slice(g.c.tokens, func(i, k int) bool { return g.c.tokens[i].Name < g.c.tokens[k].Name })
}

func (g *claimGenerator) update() {
	t, alias := g.c.table, ""
	qualifier := []string{"", t.name + "."}[g.IntN(2)]
	if g.IntN(4) == 0 {
		alias, qualifier = " AS x", "x."
	}
	set, does := g.set("", qualifier, nil)
	where, keys := g.where(qualifier)
	does(keys)
	g.c.kind, g.c.query, g.c.returns = "update", "UPDATE "+t.name+alias+" SET "+set+where, true
}

func (g *claimGenerator) delete() {
	where, keys := g.where("")
	for _, key := range keys {
		g.c.acts = append(g.c.acts, act{key: key, deletes: true})
	}
	g.c.kind, g.c.query, g.c.needs, g.c.deletes = "delete", "DELETE FROM "+g.c.table.name+where, true, true
}

// newRow writes a row to insert.
func (g *claimGenerator) newRow(key string) (text string, claim *int64) {
	text = "(" + g.keyArg(key) + ", 'new', "
	if g.IntN(4) == 0 {
		return text + "NULL)", nil
	}
	n := g.Int64N(8)
	return text + g.arg(n) + ")", &n
}

// rows writes the beginning of an INSERT of one or two rows, and returns the keys that exist.
func (g *claimGenerator) rows() (text string, there []string, claims map[string]*int64) {
	t, claims := g.c.table, map[string]*int64{}
	var rows []string
	for range 1 + g.IntN(2) {
		key := g.pick()
		if _, again := claims[key]; again {
			continue
		}
		row, claim := g.newRow(key)
		rows, claims[key] = append(rows, row), claim
		if t.rows[key] != nil {
			there = append(there, key)
		} else {
			g.c.added[key] = &claimRow{claim: claim, state: "new"}
		}
	}
	return "INSERT INTO " + t.name + " (" + t.key + ", state, attempt) VALUES " + strings.Join(rows, ", "), there, claims
}

func (g *claimGenerator) insert() {
	text, _, _ := g.rows()
	if g.c.kind, g.c.query = "insert", text+" ON CONFLICT DO NOTHING"; g.d == sqlfence.MySQL {
		g.c.query = strings.Replace(text, "INSERT", "INSERT IGNORE", 1)
	}
	g.c.over = false
}

func (g *claimGenerator) upsert() {
	text, there, claims := g.rows()
	qualifier := g.c.table.name + "."
	clause := " ON CONFLICT (" + g.c.table.key + ") DO UPDATE SET "
	if g.d == sqlfence.MySQL {
		clause = " ON DUPLICATE KEY UPDATE "
	}
	set, does := g.set("", qualifier, func(key string) *int64 { return claims[key] })
	does(there)
	g.c.kind, g.c.query = "upsert", text+clause+set
	if g.d != sqlfence.MySQL && g.IntN(4) == 0 { // the clause leaves out rows of a state
		state := g.state()
		g.c.query += " WHERE " + qualifier + "state <> " + g.arg(state)
		g.c.acts = slices.DeleteFunc(g.c.acts, func(a act) bool { return g.c.table.rows[a.key].state == state })
	}
}

func (g *claimGenerator) joined() {
	from := func(qualifier string) (text string, keys []string) {
		n := g.Int64N(3)
		return "p.job > " + g.arg(n), g.c.table.present(func(k string, _ *claimRow) bool { return slices.Contains(picked, k) && k > fmt.Sprint(n) })
	}
	g.c.kind = "joined"
	if g.d == sqlfence.MySQL {
		set, does := g.set("j.", "j.", nil)
		where, keys := from("j.")
		does(keys)
		g.c.query = "UPDATE jobs j JOIN picks p ON p.job = j.id SET " + set + " WHERE " + where
		return
	}
	set, does := g.set("", "jobs.", nil)
	where, keys := from("jobs.")
	does(keys)
	g.c.query = "UPDATE jobs SET " + set + " FROM picks p WHERE p.job = jobs.id AND " + where
}

// with writes an UPDATE in an item of WITH.
func (g *claimGenerator) with() {
	g.update()
	g.c.kind, g.c.returns = "with", false
	g.c.query = "WITH u AS (" + g.c.query + " RETURNING 1) SELECT count(*) FROM u"
}

// both writes a takeover of rows in an item of WITH, and a write of another row by its holder.
func (g *claimGenerator) both() {
	a, b := g.pick(), g.pick()
	for a == b {
		b = g.pick()
	}
	is := func(key string) func(string, *claimRow) bool {
		return func(k string, _ *claimRow) bool { return k == key }
	}
	text := "WITH u AS (UPDATE jobs SET attempt = COALESCE(attempt, 0) + 1 WHERE id = " + g.keyArg(a) + " RETURNING id) "
	for _, key := range g.c.table.present(is(a)) {
		next := g.c.table.rows[key].current() + 1
		g.c.acts = append(g.c.acts, act{key: key, raises: true, claim: &next})
	}
	state := g.state()
	text += "UPDATE jobs SET state = " + g.arg(state) + " WHERE id = " + g.keyArg(b)
	for _, key := range g.c.table.present(is(b)) {
		g.c.acts = append(g.c.acts, act{key: key, state: state})
	}
	g.c.kind, g.c.query, g.c.needs = "both", text, true
}

func (g *claimGenerator) merge() {
	g.plain = true
	claims := map[string]*int64{}
	var rows, there []string
	for range 1 + g.IntN(2) {
		key := g.pick()
		if _, again := claims[key]; again {
			continue
		}
		n := g.Int64N(12)
		rows, claims[key] = append(rows, fmt.Sprintf("(%s, %d)", key, n)), &n
		if g.c.table.rows[key] != nil {
			there = append(there, key)
		}
	}
	text := "MERGE INTO jobs AS j USING (VALUES " + strings.Join(rows, ", ") + ") AS s (k, attempt) ON j.id = s.k"
	if g.IntN(3) == 0 {
		text += " WHEN MATCHED AND s.attempt > 6 THEN DELETE"
		there = slices.DeleteFunc(there, func(key string) bool {
			if *claims[key] > 6 {
				g.c.acts = append(g.c.acts, act{key: key, deletes: true})
			}
			return *claims[key] > 6
		})
		g.c.deletes, g.c.needs = true, true
	}
	set, does := g.set("", "j.", func(key string) *int64 { return claims[key] })
	set = strings.ReplaceAll(set, "excluded.", "s.")
	does(there)
	text += " WHEN MATCHED THEN UPDATE SET " + set
	if g.IntN(2) == 0 {
		text += " WHEN NOT MATCHED THEN INSERT (id, state, attempt) VALUES (s.k, 'new', s.attempt)"
		for key, claim := range claims {
			if g.c.table.rows[key] == nil {
				g.c.added[key] = &claimRow{claim: claim, state: "new"}
			}
		}
	}
	g.c.kind, g.c.query = "merge", text
}

// results writes a row of a table with ClaimOf. All claims of jobs in the context must be current, also under
// WithTakeover.
func (g *claimGenerator) results() {
	job := g.pick()
	g.c.kind, g.c.query = "results", "UPDATE results SET note = "+g.arg(g.state())+" WHERE job_id = "+g.keyArg(job)
	g.c.acts = []act{{key: job}} // for the tokens
	g.c.other = func(c *claimCase) []error {
		c.acts = nil
		m := resultsModel{attempts: map[int64]int64{}}
		var claims []int64
		for key, row := range c.table.rows {
			var n int64
			fmt.Sscan(key, &n)
			m.attempts[n] = row.current()
		}
		for _, token := range c.tokens {
			var n int64
			if _, err := fmt.Sscanf(token.Name, "jobs/%d", &n); err == nil {
				claims = append(claims, n, token.Value)
			}
		}
		var n int64
		fmt.Sscan(job, &n)
		if err := m.refusal(claims, []int64{n}, false); err != nil {
			return []error{err}
		}
		return nil
	}
}

// A claimRun sends the statements of one driver.
type claimRun struct {
	*claimGenerator
	t         *testing.T
	db, plain *sql.DB
	native    *fencepgx.Conn // of the database, where fencepgx opened it
	prepared  map[string]*sql.Stmt
	recent    []string
	landed    int            // stale writes that landed
	met       map[string]int // number of statements by kind and outcome
}

const preparedAtMost = 200

// send sends a statement in a random way, and reports whether the statement was committed.
func (r *claimRun) send(ctx context.Context, c *claimCase) (way string, kept bool, err error) {
	exec := func(db execer) error { _, err := db.ExecContext(ctx, c.query, c.args...); return err }
	switch way := r.IntN(8); {
	case way == 0 && (len(r.prepared) < preparedAtMost || r.prepared[c.query] != nil):
		stmt := r.prepared[c.query]
		if stmt == nil {
			if stmt, err = r.db.PrepareContext([]context.Context{ctx, r.t.Context()}[r.IntN(2)], c.query); err != nil {
				return "prepare", false, err
			}
			r.prepared[c.query] = stmt
		}
		_, err = stmt.ExecContext(ctx, c.args...)
		return "prepared", true, err
	case way == 1:
		tx, err := r.db.BeginTx(ctx, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		err = exec(tx)
		if kept = err == nil && r.IntN(2) == 0; !kept {
			return "rolled back", false, errors.Join(err, tx.Rollback())
		}
		return "committed", true, tx.Commit()
	case way == 2 && c.returns && r.d != sqlfence.MySQL:
		rows, err := r.db.QueryContext(ctx, c.query+" RETURNING attempt", c.args...)
		if err != nil {
			return "query", true, err
		}
		for rows.Next() {
		}
		return "query", true, errors.Join(rows.Err(), rows.Close())
	case way < 5 && r.native != nil:
		b := new(pgx.Batch)
		b.Queue("SELECT 1")
		b.Queue(c.query, c.args...)
		b.Queue("SELECT $1::bigint", 1)
		return "batch", true, r.native.SendBatch(ctx, b).Close()
	}
	return "exec", true, exec(r.db)
}

// step runs one statement and compares its outcome with the model.
func (r *claimRun) step(n int) {
	c := r.next()
	want := c.refusals()
	ctx := sqlfence.WithFence(r.t.Context(), c.tokens...)
	if c.over {
		ctx = sqlfence.WithTakeover(ctx)
	}
	before := r.rows()
	way, kept, err := r.send(ctx, c)
	is := func(want error) bool { return errors.Is(err, want) }
	what := fmt.Sprintf("step %d, %s: %s %v\n\tpresents %v, takes over %v, jobs %s: %v, want %v", n, way, c.query, c.args, c.tokens, c.over, before, err, want)
	r.recent = append(r.recent[max(0, len(r.recent)-checkedEach):], what)
	switch {
	case len(want) > 0 && !slices.ContainsFunc(want, is), len(want) == 0 && err != nil:
		r.t.Error(what)
		if slices.Contains(want, sqlfence.ErrStale) && err == nil {
			r.landed++
		}
	case err != nil:
		r.met[c.kind+": "+strings.TrimPrefix(want[slices.IndexFunc(want, is)].Error(), "sqlfence: ")]++
	default:
		r.met[c.kind]++
	}
	if err == nil && kept { // apply even an effect that was forbidden, so that the model matches the table
		c.apply()
	}
}

// checkedEach is the number of statements between two checks of the tables.
const checkedEach = 20

// rows returns the rows of the model.
func (r *claimRun) rows() string {
	var all []string
	for _, t := range r.tables {
		for _, key := range t.keys {
			if row := t.rows[key]; row != nil && row.claim == nil {
				all = append(all, key+" "+row.state+" NULL")
			} else if row != nil {
				all = append(all, fmt.Sprint(key, " ", row.state, " ", *row.claim))
			}
		}
	}
	return strings.Join(all, ", ")
}

// check compares the tables with the model.
func (r *claimRun) check() {
	r.t.Helper()
	var all []string
	for _, t := range r.tables {
		found := map[string]string{}
		rows, err := r.plain.QueryContext(r.t.Context(), "SELECT "+t.key+", state, attempt FROM "+t.name)
		if err != nil {
			r.t.Fatal(err)
		}
		for rows.Next() {
			var key, state string
			var claim sql.NullInt64
			if err := rows.Scan(&key, &state, &claim); err != nil {
				r.t.Fatal(err)
			}
			if found[key] = key + " " + state + " NULL"; claim.Valid {
				found[key] = fmt.Sprint(key, " ", state, " ", claim.Int64)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			r.t.Fatal(err)
		}
		for _, key := range t.keys {
			if found[key] != "" {
				all = append(all, found[key])
			}
		}
	}
	if got := strings.Join(all, ", "); got != r.rows() {
		r.t.Fatalf("the tables have %s, the model %s, after\n%s", got, r.rows(), strings.Join(r.recent, "\n"))
	}
}

// newClaimRun creates empty tables.
func newClaimRun(t *testing.T, b harness.Base, seed uint64, sealed bool) *claimRun {
	t.Helper()
	b.AsWritten = true
	dsn := b.DSN(t)
	r := &claimRun{t: t, plain: b.Raw(t, dsn), prepared: map[string]*sql.Stmt{}, met: map[string]int{},
		claimGenerator: &claimGenerator{Rand: rand.New(rand.NewPCG(seed, uint64(crc32.ChecksumIEEE([]byte(b.Name))))), d: b.Dialect, tables: newClaimTables()}}
	text := "varchar(40)"
	if b.Dialect == sqlfence.MySQL {
		text += " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
	}
	for _, query := range []string{
		"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20) NOT NULL, attempt bigint)",
		"CREATE TABLE named (name " + text + " NOT NULL PRIMARY KEY, state varchar(20) NOT NULL, attempt bigint)",
		"CREATE TABLE picks (job bigint PRIMARY KEY)", "INSERT INTO picks (job) VALUES (1), (2), (3)",
		"CREATE TABLE results (job_id bigint PRIMARY KEY, note varchar(20))", "INSERT INTO results (job_id) VALUES (1), (2), (3), (4), (5)",
	} {
		if _, err := r.plain.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	jobs, named := []sqlfence.Rule{sqlfence.Key("id"), sqlfence.Claim("attempt")}, []sqlfence.Rule{sqlfence.Key("name"), sqlfence.Claim("attempt")}
	if sealed {
		jobs, named = append(jobs, sqlfence.Sealed()), append(named, sqlfence.Sealed())
	}
	r.db = b.Fenced(t, dsn, sqlfence.WithTable("jobs", jobs...), sqlfence.WithTable("named", named...),
		sqlfence.WithTable("results", sqlfence.ClaimOf("jobs"), sqlfence.Key("job_id")))
	r.db.SetMaxOpenConns(1)
	r.plain.SetMaxOpenConns(1)
	if under, ok := harness.Fencepgx(r.db); ok {
		var err error
		if r.native, err = under.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.native.Release)
	}
	if sealed {
		if err := schema.Seal(t.Context(), r.db); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// run runs this many statements, and fails unless each kind of outcome has occurred.
func (r *claimRun) run(cases int) {
	for n := range cases {
		r.step(n)
		if n%checkedEach == checkedEach-1 || n == cases-1 {
			r.check()
		}
	}
	var all []string
	for _, kind := range []string{"update: stale", "upsert: stale", "update: fencing token was not issued", "upsert", "update", "delete: stale", "delete"} {
		if !slices.ContainsFunc(sortedKeys(r.met), func(met string) bool { return strings.HasPrefix(met, kind) }) {
			r.t.Errorf("no case of %q", kind)
		}
	}
	for _, what := range sortedKeys(r.met) {
		all = append(all, fmt.Sprintf("%s %d", what, r.met[what]))
	}
	r.t.Logf("%d cases, %d stale ones landed: %s", cases, r.landed, strings.Join(all, ", "))
}

func sortedKeys(m map[string]int) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// Random statements on tables with claims have the outcome that the model predicts: each claim that the context
// presents for a written row is compared, whatever the statement does to the row.
func TestPresentedClaimsModel(t *testing.T) {
	usual := 100_000
	if testing.Short() || harness.RaceEnabled { // a fiftieth, or a fifth, of a long run
		usual = 20_000
	}
	cases := random.Rounds(t, usual)
	test := func(t *testing.T, b harness.Base) { newClaimRun(t, b, random.Seed(t), false).run(cases) }
	harness.EachProgram(t, test)
	t.Run("fencepgx", func(t *testing.T) { test(t, harness.Native) })
}

// TestPresentedClaimsOfSealedTables runs the statements on sealed tables.
func TestPresentedClaimsOfSealedTables(t *testing.T) {
	cases := random.Rounds(t, 10_000)
	harness.EachProgram(t, func(t *testing.T, b harness.Base) {
		if !b.Networked() {
			t.Skip("SQLite has no seals")
		}
		newClaimRun(t, b, random.Seed(t), true).run(cases)
	})
}
