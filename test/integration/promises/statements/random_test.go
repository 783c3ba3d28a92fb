package statements_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// randomRules are the rules that random statements are guarded by.
var randomRules = []struct {
	name   string
	rules  []sqlfence.Rule
	keyed  bool   // there is a token for each row
	ledger bool   // an older token is refused whatever rows the statement reaches
	marked string // a condition that each row written with the token 9 satisfies
	claims bool   // the rows have the tokens as claims before they are written
	of     string // the table with the claims; empty for books
}{
	{name: "row fence", marked: "fence_token = 9",
		rules: []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
	{name: "ledger", marked: "true", ledger: true,
		rules: []sqlfence.Rule{sqlfence.Ledger()}},
	{name: "row fence and serial", marked: "fence_token = 9 AND serial = 1 + (id <= 4)::int",
		rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Serial("serial")}},
	{name: "all", marked: "fence_token = 9 AND serial = 1 + (id <= 4)::int", ledger: true,
		rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Serial("serial")}},
	{name: "row fence of keys", marked: "fence_token = 9", keyed: true,
		rules: []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id")}},
	{name: "ledger of keys", marked: "true", keyed: true,
		rules: []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
	{name: "claims", marked: "fence_token = 9", keyed: true, claims: true,
		rules: []sqlfence.Rule{sqlfence.Claim("fence_token"), sqlfence.Key("id")}},
	{name: "claims of another table", marked: "true", ledger: true, of: "jobs",
		rules: []sqlfence.Rule{sqlfence.ClaimOf("jobs")}},
	{name: "claims of another table's keys", marked: "true", keyed: true, ledger: true, of: "jobs",
		rules: []sqlfence.Rule{sqlfence.ClaimOf("jobs"), sqlfence.Key("id")}},
}

// Random statements of PostgreSQL: a fenced statement returns the same rows and leaves the same tables as without the
// fence, marks all written rows, and is refused with an older token. No valid statement is refused for its form, except
// texts that pgx's simple protocol could misread.
//
// Each statement has a separate seed, which a failure reports. To run one statement, name the subtest with -run and set
// SQLFENCE_ROUNDS=1 SQLFENCE_SEED=n.
func TestRandomStatements(t *testing.T) {
	first, count := harness.Seed(t), harness.Rounds(t, 60)
	for nth, b := range harness.Bases {
		if b.Dialect != sqlfence.Postgres || testing.Short() && !b.IsUsual() {
			continue
		}
		for i, rules := range randomRules {
			t.Run(b.Name+"/"+rules.name, func(t *testing.T) {
				l := newRandomLab(t, b, rules.rules)
				if rules.claims {
					l.Exec(t, "UPDATE books SET fence_token = 9")
					l.Exec(t, "ALTER TABLE books ALTER COLUMN fence_token SET DEFAULT 9")
				}
				l.marked, l.ledger, l.fresh, l.older = rules.marked, rules.ledger, holdingKeys(t, rules.of, 9), holdingKeys(t, rules.of, 4)
				kind := "statement"
				if rules.keyed {
					kind = "keyed"
				} else if rules.of == "" {
					l.fresh, l.older = harness.Holding(t, 9), harness.Holding(t, 4)
				}
				for n := range count {
					seed := first + uint64(n)
					l.r = rand.New(rand.NewPCG(seed, uint64(nth*len(randomRules)+i)))
					query, args := (&writer{r: l.r}).statement(kind)
					if l.try(t, query, args); t.Failed() {
						t.Fatalf("seed %d, arguments %v:\n%s", seed, args, query)
					}
				}
				t.Logf("%d statements are valid, %d not; %d reached rows; %d refused in the simple protocol", l.valid, l.invalid, l.reached, l.inlined)
				if count >= 50 && (l.valid < l.invalid || l.reached*5 < l.valid || l.inlined*4 > l.valid) {
					t.Error("too few are valid, reach rows or are let through to show anything")
				}
			})
		}
	}
}

// holdingKeys returns a context with a token for each row of books that statements may write, or for the row of
// another table with its key.
func holdingKeys(t *testing.T, of string, value int64) context.Context {
	ctx := t.Context()
	for _, key := range []int64{1, 2, 3, 4, 20} {
		token, err := sqlfence.ClaimToken(cmp.Or(of, "books"), key, value)
		if err != nil {
			t.Fatal(err)
		}
		ctx = sqlfence.WithFence(ctx, token)
	}
	return ctx
}

// A randomLab tries statements, each in a transaction that is rolled back.
type randomLab struct {
	*harness.Shop
	r            *rand.Rand
	fresh, older context.Context // with newer and with older tokens
	marked       string          // as in randomRules, and so is ledger
	ledger       bool

	valid, invalid, reached int
	inlined                 int // refused because pgx would write the arguments into the text
}

func newRandomLab(t *testing.T, b harness.Base, rules []sqlfence.Rule) *randomLab {
	l := &randomLab{Shop: harness.Setting{Base: b}.Shop(t)}
	l.DB = b.Fenced(t, l.Source, harness.Books(rules...), sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
	l.Plain.SetMaxOpenConns(1)
	l.DB.SetMaxOpenConns(1)
	const columns = "price int DEFAULT 5, a int DEFAULT 1, b int, t text, ts timestamptz, arr int[], j jsonb"
	const values = `n, n%2, 'x', '2020-02-02'::timestamptz, '{1,2}'::int[], '{"where":1}'::jsonb FROM generate_series(1, 4) n`
	for _, query := range []string{
		"DROP TABLE books",
		"CREATE TABLE books (id int PRIMARY KEY, " + columns + ", fence_token bigint DEFAULT 5, serial bigint DEFAULT 1)",
		"CREATE TABLE other (id int, " + columns + ")",
		"INSERT INTO books SELECT n, n, " + values,
		"INSERT INTO other SELECT n, n, " + values,
		"CREATE TABLE jobs (id int PRIMARY KEY, attempt bigint)",
		"INSERT INTO jobs SELECT n, 9 FROM generate_series(1, 20) n",
	} {
		l.Exec(t, query)
	}
	for _, name := range []string{"books", "books/1", "books/2", "books/3", "books/4", "books/20"} {
		l.Raise(t, name, 9)
	}
	return l
}

// try runs a statement by the bare driver, with a token, and with an older token.
func (l *randomLab) try(t *testing.T, query string, args []any) {
	t.Helper()
	if l.IsPgx() {
		args = append([]any{harness.PgxModes[l.r.IntN(len(harness.PgxModes))]}, args...)
	}
	want, wantErr := l.run(t.Context(), l.Plain, query, args)
	got, err := l.run(l.fresh, l.DB, query, args)
	if wantErr != nil {
		if l.invalid++; err == nil {
			t.Errorf("without the fence: %v, with it none", wantErr)
		}
		return
	}
	l.valid++
	if err != nil {
		// pgx's scanner and the server's would read the text differently.
		if refusal := (*sqlfence.UnguardableError)(nil); errors.As(err, &refusal) && strings.HasPrefix(refusal.Reason, "in its simple protocol") {
			l.inlined++
			return
		}
		t.Errorf("with a fresh token: %v", err)
		return
	}
	if !slices.Equal(got.rows, want.rows) {
		t.Errorf("returned %q, want %q", got.rows, want.rows)
	}
	if !slices.Equal(got.left, want.left) {
		t.Errorf("left %q, want %q", got.left, want.left)
	}
	if len(got.marks) > 0 {
		t.Errorf("wrote without a mark: %q", got.marks)
	}
	kept := 0 // existing rows that the statement left alone
	for _, row := range want.left {
		if strings.HasPrefix(row, "false ") {
			kept++
		}
	}
	reached := kept < 4
	if reached {
		l.reached++
	}
	if _, err := l.run(l.older, l.DB, query, args); (reached || l.ledger) && !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("with an older token: %v", err)
	}
}

// run runs a statement in a transaction that is rolled back. In the outcome's left, the first word of each row of books
// says whether the statement wrote the row. Its marks are the written rows for which l.marked doesn't hold.
func (l *randomLab) run(ctx context.Context, db *sql.DB, query string, args []any) (o outcome, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return o, err
	}
	defer tx.Rollback()
	if o.rows, err = lines(tx.QueryContext(ctx, query, args...)); err != nil {
		return o, err
	}
	slices.Sort(o.rows)
	const written = "xmin = pg_current_xact_id()::xid"
	const books = "SELECT " + written + ", (id, price, a, b, t, ts, arr, j)::text FROM books"
	if o.left, err = lines(tx.QueryContext(ctx, books+" UNION ALL SELECT NULL, other::text FROM other ORDER BY 1, 2")); err != nil {
		return o, err
	}
	o.marks, err = lines(tx.QueryContext(ctx, "SELECT id, fence_token, serial FROM books WHERE "+written+" AND ("+l.marked+") IS NOT TRUE"))
	return o, err
}
