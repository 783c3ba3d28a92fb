package orders_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/tokens"
)

// A write is a kind of write to books, with the rows that it may reach and its effects.
type write struct {
	text                                     string // UPSERT stands for the database's syntax
	ids                                      []int
	inserts, updates, deletes, wrong, raises bool
}

var writes = map[string]write{
	"update":  {text: "UPDATE books SET tag = ? WHERE id = 1", ids: []int{1}},
	"other":   {text: "UPDATE books SET tag = ? WHERE id = 2", ids: []int{2}},
	"several": {text: "UPDATE books SET tag = ? WHERE id < 3", ids: []int{1, 2}},
	"delete":  {text: "DELETE FROM books WHERE id = 1", ids: []int{1}, deletes: true},
	"insert":  {text: "INSERT INTO books (id, tag) VALUES (7, ?)", ids: []int{7}, inserts: true},
	"upsert":  {text: "INSERT INTO books (id, tag) VALUES (1, ?) UPSERT", ids: []int{1}, inserts: true, updates: true},
	"fresh":   {text: "INSERT INTO books (id, tag) VALUES (7, ?) UPSERT", ids: []int{7}, inserts: true, updates: true},
	"put":     {ids: []int{1}}, // for a control
	"wrong":   {text: "UPDATE books SET price = NULL WHERE id = 1", ids: []int{1}, wrong: true},
	"raise":   {text: "UPDATE books SET serial = serial + 1 WHERE id = 1", ids: []int{1}, raises: true},
}

// compared reports whether the write's serial may be compared with the version that its session has read.
func (w write) compared() bool { return !w.inserts && !w.raises }

// action returns the session's action of this name.
func (s *session) action(name string) action {
	if own, ok := s.own[name]; ok {
		return own
	}
	return actions[name]
}

// An action is a single step of a session. It records the presented tokens and the response in the op.
type action func(ctx context.Context, s *session, o *op) error

var actions map[string]action

func init() {
	actions = map[string]action{
		"begin":    func(ctx context.Context, s *session, o *op) error { return s.beginTx(ctx, s.db, o) },
		"plain":    func(ctx context.Context, s *session, o *op) error { return s.beginTx(ctx, s.plain, o) },
		"snapshot": snapshot,
		"commit":   commit,
		"rollback": commit,
		"issue":    issue,
		"adopt":    adopt,
		"acquire":  acquire,
		"extend":   extend,
		"release":  release,
		"expire":   plainly("UPDATE fencing_leases SET expires_at = acquired_at"),
		"hold":     hold,
		"note":     note,
		"read":     read,
		"claim":    claim,
		"lock":     lock,
		"unlock":   unlock,
		"touch":    plainly("UPDATE books SET price = price + 1 WHERE id = 1"),
		"bare":     plainly("UPDATE books SET tag = ? WHERE id = 1"),
		"seal":     seal,
		"unseal":   seal,
	}
	for kind, w := range writes {
		actions[kind] = guarded(w)
	}
}

// parts are the actions of a step.
func (s *session) parts(step string, sc *scenario) []string {
	begins := strings.HasPrefix(step, "+")
	step = strings.TrimPrefix(step, "+")
	switch {
	case begins && (step == "touch" || step == "bare"):
		return []string{"plain", step}
	case begins:
		return []string{"begin", step}
	case step == "begin":
		return []string{"begin", "snapshot"}
	case step == "take":
		return s.taking(nil)
	case step == "acquire" || step == "adopt":
		return append([]string{step}, slices.DeleteFunc(s.taking(nil), func(a string) bool { return a == "issue" })...)
	}
	return []string{step}
}

// taking returns the actions by which a session gets the tokens, versions and locks that the rules require. The first
// session's actions are those of the beginning, without an edit lock.
func (s *session) taking(begin *scenario) (all []string) {
	switch {
	case s.rules.claims() && begin == nil:
		all = append(all, "claim")
	case s.rules.claims(): // the reset has given it the rows
		s.claims = map[int]int64{1: 5, 2: 5}
		if s.rules.has("ClaimOf") {
			s.claims[7] = 5
		}
	case s.rules.tokens() && begin != nil && begin.uses("acquire"):
		all = append(all, "acquire")
	case s.rules.tokens():
		all = append(all, "issue")
	}
	if s.rules.has("Serial") && begin == nil {
		all = append(all, "read")
	}
	if s.rules.has("EditLock") && begin == nil {
		all = append(all, "lock")
	}
	return all
}

func (s *session) beginTx(ctx context.Context, db *sql.DB, o *op) (err error) {
	s.tx, err = s.place.begin(ctx, db)
	s.txBegan = o.began
	return err
}

func snapshot(ctx context.Context, s *session, _ *op) error {
	return s.tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM books").Scan(new(int))
}

// commit commits the transaction. A transaction that can't be committed is rolled back.
func commit(ctx context.Context, s *session, o *op) error {
	if s.dead || o.action == "rollback" {
		o.action = "rollback"
		err := s.tx.rollback(ctx)
		s.tx = nil
		return err
	}
	err := s.tx.commit(ctx)
	if outcomeOf(err) != busy {
		s.tx = nil
	}
	return err
}

// guarded returns the action that sends a write with the session's tokens, versions and locks.
func guarded(w write) action {
	return func(ctx context.Context, s *session, o *op) (err error) {
		if ctx, o.tokens, err = s.presented(ctx, w); err != nil {
			return err
		}
		o.serial = s.serial
		text := s.text(strings.Replace(w.text, "UPSERT", s.upsert, 1))
		_, err = s.runner().ExecContext(ctx, text, s.args(w.text, o)...)
		return err
	}
}

// args returns a unique tag for a write that sets a tag.
func (s *session) args(text string, o *op) []any {
	if !strings.Contains(text, "?") {
		return nil
	}
	return []any{o.tag}
}

// runner returns the session's open transaction, or its database handle.
func (s *session) runner() runner {
	if s.tx != nil {
		return s.tx
	}
	return s.db
}

// plainly returns the action that executes a statement without sqlfence.
func plainly(text string) action {
	return func(ctx context.Context, s *session, o *op) error {
		var r runner = s.plain
		if s.tx != nil {
			r = s.tx
		}
		_, err := r.ExecContext(ctx, s.text(text), s.args(text, o)...)
		return err
	}
}

func issue(ctx context.Context, s *session, o *op) error {
	all, err := s.store.IssueMany(ctx, s.names()...)
	if err != nil {
		return err
	}
	for _, token := range all {
		if token.Value != all[0].Value {
			return fmt.Errorf("names that rise together have the tokens %v", all)
		}
	}
	s.token, o.answer = all[0].Value, fmt.Sprint(all[0].Value)
	return nil
}

// adopt increases the token above all tokens that the order can have issued.
func adopt(ctx context.Context, s *session, o *op) error {
	value := s.token0 + 5
	o.tokens = map[int]int64{0: value}
	err := s.store.Adopt(ctx, sqlfence.Token{Name: "books", Value: value})
	if err == nil {
		s.token = value
	}
	return err
}

func acquire(ctx context.Context, s *session, o *op) error {
	l, ok, err := s.leases.TryAcquire(ctx, "books")
	switch {
	case err != nil:
		return err
	case !ok:
		return errHeld
	}
	s.token, s.lockID, o.answer = l.Token().Value, l.LockID(), fmt.Sprint(l.Token().Value)
	return nil
}

// errHeld stands for TryAcquire's result that the lease is held, which isn't an error.
var errHeld = errors.New("the lease is held")

func extend(ctx context.Context, s *session, _ *op) error {
	_, err := s.leases.Extend(ctx, s.lockID, time.Hour)
	return err
}

func release(ctx context.Context, s *session, _ *op) error { return s.leases.Release(ctx, s.lockID) }

// hold holds the transaction's tokens, or the claim of row 1. If it can't, the transaction is rolled back.
func hold(ctx context.Context, s *session, o *op) (err error) {
	defer func() { s.dead = s.dead || err != nil && outcomeOf(err) != busy }()
	var held []sqlfence.Token
	if _, o.tokens, err = s.presented(ctx, write{ids: []int{1, 2, 7}, raises: true}); err != nil {
		return err
	}
	switch {
	case s.rules.has("ClaimOf"):
		return s.store.HoldClaim(ctx, s.tx, tokens.Claim{Table: "jobs", Key: "id", Column: "attempt"}, 1, s.claims[1])
	case s.rules.claims():
		return s.store.HoldClaim(ctx, s.tx, tokens.Claim{Table: "books", Key: "id", Column: "attempt"}, 1, s.claims[1])
	}
	for _, name := range s.names() {
		held = append(held, sqlfence.Token{Name: name, Value: s.token})
	}
	return s.store.Hold(ctx, s.tx, held...)
}

// note writes a table without rules, without tokens.
func note(ctx context.Context, s *session, o *op) error {
	_, err := s.tx.ExecContext(ctx, s.text("UPDATE notes SET tag = ? WHERE id = 1"), o.tag)
	return err
}

func read(ctx context.Context, s *session, o *op) error {
	err := s.db.QueryRowContext(ctx, "SELECT serial FROM books WHERE id = 1").Scan(&s.serial)
	if errors.Is(err, sql.ErrNoRows) {
		s.serial, err = 0, nil
	}
	o.answer = fmt.Sprint(s.serial)
	return err
}

// claim increments the claims of the rows, in a separate transaction.
func claim(ctx context.Context, s *session, o *op) error {
	table, ids, where := "books", []int{1, 2}, "id < 3"
	if s.rules.has("ClaimOf") {
		table, ids, where = "jobs", []int{1, 2, 7}, "id < 8"
	}
	t, err := s.place.begin(ctx, s.db)
	if err != nil {
		return err
	}
	claims := make(map[int]int64)
	var all []string
	_, err = t.ExecContext(ctx, "UPDATE "+table+" SET attempt = attempt + 1 WHERE "+where)
	for _, id := range ids {
		var value int64
		if err == nil {
			err = t.QueryRowContext(ctx, fmt.Sprintf("SELECT attempt FROM %s WHERE id = %d", table, id)).Scan(&value)
		}
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		} else if err == nil {
			claims[id] = value
			all = append(all, fmt.Sprintf("%d:%d", id, value))
		}
	}
	if err == nil {
		err = t.commit(ctx)
		if outcomeOf(err) != busy {
			s.claims, o.answer = claims, strings.Join(all, " ")
			return err
		}
	}
	return errors.Join(err, t.rollback(ctx))
}

func lock(ctx context.Context, s *session, o *op) error {
	o.serial = s.serial
	_, err := s.locks.Request(ctx, rowlock.Edit{ID: 1, User: s.editor, Serial: s.serial, TTL: time.Hour})
	return err
}

func unlock(ctx context.Context, s *session, _ *op) error { return s.locks.Release(ctx, 1, s.editor) }

func seal(ctx context.Context, s *session, o *op) error {
	if o.action == "seal" {
		return schema.Seal(ctx, s.db)
	}
	return schema.Unseal(ctx, s.db, "books")
}
