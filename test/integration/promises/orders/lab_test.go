package orders_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/lease"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

// A place holds separate tables, in which one order runs at a time.
type place struct {
	*database
	mode
	dsn    string
	admin  *sql.DB   // without sqlfence, to prepare and to read tables
	itself string    // the database's name, if sessions wait in the database
	sealed fact.Fact // after the last order, if known
}

func (d *database) newPlace(t *testing.T, m mode) *place {
	t.Helper()
	p := &place{database: d, mode: m, dsn: d.open(t, d, m)}
	p.admin = one(d.Raw(t, p.dsn))
	if d.waits != nil {
		if err := p.admin.QueryRowContext(t.Context(), d.itsName).Scan(&p.itself); err != nil {
			t.Fatal(err)
		}
	}
	at := d.TimeType()
	for _, query := range []string{
		`CREATE TABLE books (id integer PRIMARY KEY, tag bigint NOT NULL DEFAULT 0, price integer NOT NULL DEFAULT 10,
			fence_token bigint NOT NULL DEFAULT 0, serial bigint NOT NULL DEFAULT 1, attempt bigint NOT NULL DEFAULT 0,
			editedby varchar(20), editedsince ` + at + `, editedexpiry ` + at + `)`,
		"CREATE TABLE jobs (id integer PRIMARY KEY, attempt bigint NOT NULL)",
		"INSERT INTO jobs (id, attempt) VALUES (1, 0), (2, 0), (7, 0)",
		"CREATE TABLE notes (id integer PRIMARY KEY, tag bigint NOT NULL)",
		"INSERT INTO notes (id, tag) VALUES (1, 0)",
	} {
		p.exec(t, query)
	}
	plain := d.Fenced(t, p.dsn)
	quiet := slog.New(slog.DiscardHandler)
	if err := harness.NewStore(t, plain, tokens.WithLogger(quiet)).Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.NewLeases(t, plain, lease.WithLogger(quiet))
	if m.prepare != "" {
		p.exec(t, m.prepare)
	}
	p.exec(t, "INSERT INTO fencing_tokens (name, token) VALUES ('books', 1), ('books/1', 1), ('books/2', 1), "+
		"('books/7', 1)")
	return p
}

func (p *place) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := p.admin.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// one limits a pool to one connection.
func one(db *sql.DB) *sql.DB {
	db.SetMaxOpenConns(1)
	return db
}

// A lab is a place with sessions and their rules.
type lab struct {
	*place
	rules    ruleset
	sessions []*session
	own      map[string]action // a control's actions, which replace actions of the same names
	tag      int64             // the last write's tag
	token0   int64             // the first session's token
}

// newLab opens the sessions, through sqlfence with options.
func (p *place) newLab(t *testing.T, r ruleset, sessions int, opts []sqlfence.Option) *lab {
	t.Helper()
	l := &lab{place: p, rules: r}
	for i := range sessions {
		s := &session{lab: l, number: i, editor: []string{"ann", "bob", "cleo"}[i]}
		s.db = one(p.Fenced(t, p.dsn, opts...))
		s.plain = one(p.Raw(t, p.dsn))
		s.store = harness.NewStore(t, s.db)
		s.leases = newLeases(t, s.db)
		if r.has("EditLock") {
			var err error
			if s.locks, err = rowlock.New(s.db, "books"); err != nil {
				t.Fatal(err)
			}
		}
		l.sessions = append(l.sessions, s)
	}
	return l
}

func newLeases(t *testing.T, db *sql.DB) *lease.Leases {
	t.Helper()
	leases, err := lease.New(db, harness.Patient())
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// seal seals the table, or unseals it.
func (l *lab) seal(ctx context.Context, want bool) (err error) {
	wanted := fact.No
	if want {
		wanted = fact.Yes
	}
	if !l.rules.has("Sealed") || l.sealed == wanted {
		return nil
	}
	if want {
		err = schema.Seal(ctx, l.sessions[0].db)
	} else {
		err = schema.Unseal(ctx, l.sessions[0].db, "books")
	}
	if err == nil {
		l.sealed = wanted
	}
	return err
}

// reset prepares an order's initial state, and returns the state. The first session then has the tokens, and has read
// the version.
func (l *lab) reset(ctx context.Context, sc *scenario) (*state, error) {
	begin := &state{rules: l.rules, holder: -1, silent: l.silent, sealed: l.rules.has("Sealed") && !sc.unsealed,
		rows: map[int]row{1: {price: 10, serial: 1, attempt: 5}, 2: {price: 10, serial: 1, attempt: 5}}}
	for _, s := range l.sessions {
		s.holding = holding{serial: 1}
		s.tx, s.dead = nil, false
	}
	if err := l.rewrite(ctx, begin); err != nil {
		return nil, err
	}
	queries := []string{"UPDATE notes SET tag = 0"}
	if l.rules.has("ClaimOf") {
		queries = append(queries, "UPDATE jobs SET attempt = 5")
		begin.jobs = 5
	}
	if sc.uses("acquire") {
		queries = append(queries, "DELETE FROM fencing_leases")
		begin.holder = 0
	}
	if err := send(ctx, l.admin, queries...); err != nil {
		return nil, err
	}
	first := l.sessions[0]
	if err := first.take(ctx, first.taking(sc)...); err != nil {
		return nil, err
	}
	begin.newest, l.token0 = first.token, first.token
	if sc.shared {
		for _, s := range l.sessions {
			s.holding = first.holding
		}
	}
	if err := l.seal(ctx, begin.sealed); err != nil {
		return nil, err
	}
	if sc.uses("seal") || sc.uses("unseal") {
		l.sealed = 0
	}
	return begin, nil
}

// rewrite replaces the rows by the initial ones. If the table stays sealed, it writes them under a new token.
func (l *lab) rewrite(ctx context.Context, begin *state) error {
	queries := []string{"DELETE FROM books", "INSERT INTO books (id, attempt) VALUES (1, 5), (2, 5)"}
	if !begin.sealed || l.sealed != fact.Yes || l.rules.claims() {
		if err := l.seal(ctx, false); err != nil {
			return err
		}
		return send(ctx, l.admin, queries...)
	}
	first := l.sessions[0]
	if err := first.take(ctx, "issue"); err != nil {
		return err
	}
	ctx, _, err := first.presented(ctx, write{ids: []int{1, 2, 7}, raises: true})
	if err != nil {
		return err
	}
	for id, r := range begin.rows {
		r.mark = first.token
		begin.rows[id] = r
	}
	return send(ctx, first.db, queries...)
}

// take runs the actions that make the session ready.
func (s *session) take(ctx context.Context, names ...string) error {
	for _, name := range names {
		o := &op{action: name, editor: s.editor}
		if err := s.action(name)(ctx, s, o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.ready = true
	return nil
}

// send executes statements.
func send(ctx context.Context, db *sql.DB, queries ...string) error {
	for _, query := range queries {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}

// left returns the rows after an order, as a reader sees them.
func (l *lab) left(ctx context.Context) (string, error) {
	s := state{rules: l.rules, rows: make(map[int]row)}
	if err := l.admin.QueryRowContext(ctx, "SELECT tag FROM notes").Scan(&s.note); err != nil {
		return "", err
	}
	rows, err := l.admin.QueryContext(ctx,
		"SELECT id, tag, price, fence_token, serial, attempt, COALESCE(editedby, '') FROM books")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		var r row
		if err := rows.Scan(&id, &r.tag, &r.price, &r.mark, &r.serial, &r.attempt, &r.editor); err != nil {
			return "", err
		}
		s.rows[id] = r
	}
	return s.shown(), rows.Err()
}

// A session is a client with two connections: through sqlfence, and without sqlfence.
type session struct {
	*lab
	number    int
	editor    string
	db, plain *sql.DB
	store     *tokens.Store
	leases    *lease.Leases
	locks     *rowlock.Table

	holding
	tx      *tx
	txBegan int64
	dead    bool // the transaction can only be rolled back
}

// A holding is what a session presents with a write: its tokens, version and lock.
type holding struct {
	ready  bool // the session has everything that the rules require
	token  int64
	claims map[int]int64
	serial int64
	lockID string
}

// presented returns the context of a write, and the write's tokens by row.
func (s *session) presented(ctx context.Context, w write) (context.Context, map[int]int64, error) {
	shown := make(map[int]int64)
	resource := "books"
	if s.rules.has("ClaimOf") {
		resource = "jobs"
	}
	for id, value := range s.claims {
		token, err := sqlfence.ClaimToken(resource, id, value)
		if err != nil {
			return nil, nil, err
		}
		ctx, shown[id] = sqlfence.WithFence(ctx, token), value
	}
	switch {
	case s.rules.tokens() && s.rules.has("Key"):
		for _, id := range w.ids {
			name := fmt.Sprintf("books/%d", id)
			ctx, shown[id] = sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: s.token}), s.token
		}
	case s.rules.tokens():
		ctx, shown[0] = sqlfence.WithFence(ctx, sqlfence.Token{Name: "books", Value: s.token}), s.token
	}
	if s.rules.has("EditLock") {
		ctx = sqlfence.WithEditor(ctx, s.editor)
	}
	if s.rules.has("Serial") && w.compared() {
		ctx = sqlfence.WithSerial(ctx, s.serial)
	}
	return ctx, shown, nil
}

// names returns the names of the tokens.
func (s *session) names() []string {
	if s.rules.has("Key") {
		return []string{"books/1", "books/2", "books/7"}
	}
	return []string{"books"}
}
