package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/fenced"
	"github.com/sqlfence/sqlfence/internal/nfc"
	"github.com/sqlfence/sqlfence/internal/nonce"
	facts "github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/setuperr"
	"github.com/sqlfence/sqlfence/internal/sql/lang"
	"github.com/sqlfence/sqlfence/internal/sqltext"
	"github.com/sqlfence/sqlfence/internal/trusted"
)

// A Tx is an open transaction: a [*sql.Tx], a [*sql.Conn] on which a transaction was begun, or the transaction of a
// library, such as sqlx, bun or gorm's ConnPool. Its database may be fenced or not. A Tx must pass on the context,
// because a fenced database reads from the context that a statement belongs to Hold.
type Tx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Hold fences the whole transaction tx. It checks that each token is the newest of its name, and locks the names: until
// the transaction ends, no token is issued for them. So the transaction, with any statements, commits only under the
// newest tokens. Hold needs no registered table. Without tokens, Hold uses those of ctx.
//
// Call Hold first, in the ledger's database and outside of savepoints. Rolling back to an earlier savepoint gives up
// the lock; on MySQL and MariaDB so do DDL, TRUNCATE and procedures that commit. If tx is of a database opened by
// sqlfence, these statements are refused, or the commit after them; otherwise avoid them. On SQLite, tx becomes the
// file's writer.
//
// [Store.Issue] waits for transactions that hold its name, so a transaction must not issue a token for a held name.
// Transactions with equal tokens don't wait for each other. Pass all tokens in one call: two calls can deadlock. After
// an error, roll the transaction back. docs/hold.md describes each database.
//
// Errors:
//
//   - [*sqlfence.StaleError], if a newer token was issued;
//   - [*sqlfence.NotIssuedError], for a token above the newest;
//   - [sqlfence.ErrUnknownName], if the ledger has no such name;
//   - [sqlfence.ErrNoFence], without a token;
//   - [sqlfence.ErrInvalid], if tx is a pool or has no open transaction, for an invalid token, and for two tokens of
//     one name;
//   - [sqlfence.ErrStandby] from a standby;
//   - [*sqlfence.UnguardableError], if several servers write to the database;
//   - [*sqlfence.SetupError], if the ledger or its function is missing.
func (s *Store) Hold(ctx context.Context, tx Tx, tokens ...sqlfence.Token) error {
	held, err := toHold(ctx, tokens)
	if err != nil {
		return err
	}
	kind, i, current, err := s.hold(ctx, tx, sqltext.LedgerTable, len(held),
		func(on *facts.Capabilities) ([]string, []any) {
			return s.dialect.holds(on, held)
		})
	switch {
	case err != nil:
		return err
	case kind == "":
		return nil
	case i >= len(held):
		return errors.New("tokens: hold: the database names a token that wasn't asked for")
	case kind == unknownName:
		return fmt.Errorf("%w: %q", sqlfence.ErrUnknownName, held[i].Name)
	case kind == olderSnapshot:
		return &snapshotError{held[i].Name}
	case current > held[i].Value:
		return &sqlfence.StaleError{Table: sqltext.LedgerTable, Token: held[i], Current: current}
	}
	return &sqlfence.NotIssuedError{Table: sqltext.LedgerTable, Token: held[i], Current: current}
}

// toHold returns the tokens that Hold compares, ordered by name.
func toHold(ctx context.Context, tokens []sqlfence.Token) ([]sqlfence.Token, error) {
	if len(tokens) == 0 {
		for _, t := range core.TokensFrom(ctx) {
			tokens = append(tokens, sqlfence.Token(t))
		}
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%w: tokens: hold: the context carries no token; take one by package lease or Issue",
			sqlfence.ErrNoFence)
	}
	tokens = slices.Clone(tokens)
	for i := range tokens {
		if err := tokens[i].Validate(); err != nil {
			return nil, err
		}
		tokens[i].Name = nfc.String(tokens[i].Name)
	}
	slices.SortFunc(tokens, func(a, b sqlfence.Token) int { return strings.Compare(a.Name, b.Name) })
	tokens = slices.Compact(tokens)
	for i := 1; i < len(tokens); i++ {
		if tokens[i-1].Name == tokens[i].Name {
			return nil, fmt.Errorf("%w: tokens: hold: two tokens of one name, %v and %v", sqlfence.ErrInvalid,
				tokens[i-1], tokens[i])
		}
	}
	return tokens, nil
}

// A Claim names a column with the claims of a table's rows, as for [sqlfence.Claim]. The table needs no registration. On
// MySQL and MariaDB it must be an InnoDB table, not a view.
type Claim struct {
	Table  string // such as "jobs" or "shop.jobs"
	Key    string // the column that identifies a row
	Column string // the integer column that is incremented when a row is taken
}

// HoldClaim is [Store.Hold] for the claim of a row: it locks the row until the transaction ends, and compares the
// stored claim. So no client can claim the row before the commit. Call it once for each row.
//
//	err := store.HoldClaim(ctx, tx, tokens.Claim{Table: "jobs", Key: "id", Column: "attempt"}, job.ID, job.Attempt)
//
// The error is a [*sqlfence.StaleError] if the row has another claim (Current), or if there is no such row (Current is
// 0). Other errors are those of Hold, and [sqlfence.ErrInvalid] for a key that isn't an integer, a text or a UUID.
func (s *Store) HoldClaim(ctx context.Context, tx Tx, of Claim, key any, claim int64) error {
	token, err := sqlfence.ClaimToken(of.Table, key, claim)
	if err != nil {
		return err
	}
	columns, err := s.quoted(of)
	if err != nil {
		return err
	}
	kind, _, current, err := s.hold(ctx, tx, columns.Table, 1, func(on *facts.Capabilities) ([]string, []any) {
		return s.dialect.holdsClaim(on, columns, key, strings.TrimPrefix(token.Name, of.Table+"/"), claim)
	})
	switch {
	case err != nil:
		return err
	case kind == olderSnapshot:
		return &snapshotError{token.Name}
	case kind != "":
		return &sqlfence.StaleError{Table: of.Table, Token: token, Current: current}
	}
	return nil
}

// quoted returns the names of a claim as SQL.
func (s *Store) quoted(of Claim) (Claim, error) {
	schema, table, err := lang.SpellName(s.dialect.names, of.Table)
	quoted := Claim{Table: sqltext.QuoteIn(s.dialect, schema, table)}
	for name, to := range map[string]*string{of.Key: &quoted.Key, of.Column: &quoted.Column} {
		column, failed := lang.ParseColumn(s.dialect.names, name)
		*to, err = s.dialect.Quote(column), errors.Join(err, failed)
	}
	if err != nil {
		return Claim{}, fmt.Errorf("%w: tokens: hold: %w", sqlfence.ErrInvalid, err)
	}
	return quoted, nil
}

// The reasons in a mark of throwHeld, before the token's index and the stored value.
const (
	outside       = "outside"  // no transaction is open
	unknownName   = "unknown"  // there is no row
	otherValue    = "ledger"   // the row has another value
	olderSnapshot = "snapshot" // the row was changed after the transaction's snapshot
	onStandby     = "standby"
)

var (
	holdNonce  = nonce.New()
	holdMarker = regexp.MustCompile("sqlfence:" + holdNonce + `:([a-z]+):(\d+):(-?\d+)`)
)

// throwHeld is an expression that fails with a reason. place and value are expressions for the token's index and the
// stored value.
func throwHeld(d sqltext.Dialect, reason, place, value string) string {
	return sqltext.Throw(d, "'sqlfence:"+holdNonce+":"+reason+":'", place, "':'", value)
}

// A sender sends a statement in the transaction of a Hold.
type sender func(text string, args ...any) error

var errOutside = fmt.Errorf("%w: tokens: hold: no transaction is open; begin one first", sqlfence.ErrInvalid)

// hold sends the statements of a Hold, which lock count rows of a table and compare their values. If a value differs,
// kind says how, token is its index, and current the stored value; otherwise kind is empty.
func (s *Store) hold(ctx context.Context, tx Tx, table string, count int,
	statements func(on *facts.Capabilities) (texts []string, args []any),
) (kind string, token int, current int64, err error) {
	if _, pool := tx.(interface{ Stats() sql.DBStats }); tx == nil || pool {
		return "", 0, 0, errOutside
	}
	server, err := s.queryServer(ctx, tx)
	if err != nil {
		return "", 0, 0, err
	}
	place := func(text string) string { return sqltext.Place(s.dialect, s.options.Schema, text) }
	texts, args := statements(server)
	if schema := s.options.Schema; schema != "" {
		texts[0] = strings.Replace(texts[0], sqltext.LedgerFunction,
			s.dialect.Quote(schema)+"."+sqltext.LedgerFunction, 1)
	}
	h := new(trusted.Hold)
	send := func(text string, args ...any) (err error) {
		text = place(text)
		ctx := h.Context(ctx, text)
		if strings.HasPrefix(text, "SELECT ") { // some drivers can't execute it without reading its rows
			rows, failed := query(ctx, tx, text, args...)
			if err = failed; err == nil && len(rows) != count {
				err = fmt.Errorf("the database compared %d tokens instead of %d; roll the transaction back",
					len(rows), count)
			}
		} else {
			_, err = tx.ExecContext(ctx, text, args...)
		}
		return err
	}
	err = s.dialect.within(s, send, place(table), texts[0], args)
	for _, text := range texts[1:] {
		if err == nil {
			err = send(text)
		}
	}
	if err == nil {
		err = ctx.Err() // as the context ends, a driver may skip a statement without an error
	}
	if err == nil {
		h.Succeeded.Store(true)
		return "", 0, 0, nil
	}
	if raised, ok := s.dialect.Thrown(err); ok {
		if found := holdMarker.FindStringSubmatch(raised); found != nil {
			kind = found[1]
			token, _ = strconv.Atoi(found[2])
			current, _ = strconv.ParseInt(found[3], 10, 64)
		}
	}
	switch {
	case kind == onStandby:
		return "", 0, 0, sqlfence.ErrStandby
	case kind == outside || errors.Is(err, errOutside):
		return "", 0, 0, errOutside
	case kind == "":
		return "", 0, 0, s.explainHold(ctx, tx, err)
	}
	return kind, token, current, nil
}

// queryServer returns the facts about the server; an error if several servers write to the database, because a lock
// holds on one server only. It queries the server once for a Store.
func (s *Store) queryServer(ctx context.Context, tx Tx) (*facts.Capabilities, error) {
	if known := s.server.Load(); known != nil {
		return known, nil
	}
	server, err := facts.QueryServer(ctx, s.dialect.server, func(ctx context.Context, text string) ([][]string, error) {
		return query(trusted.Context(ctx, text), tx, text)
	})
	switch {
	case err != nil:
		return nil, s.explainHold(ctx, tx, err)
	case server.Apart != "":
		return nil, &sqlfence.UnguardableError{Table: sqltext.LedgerTable, Offset: -1,
			Reason: "Hold needs a lock, which holds only where " + server.Apart}
	}
	s.server.Store(&server)
	return &server, nil
}

// query returns the rows of a query as texts.
func query(ctx context.Context, tx Tx, text string, args ...any) ([][]string, error) {
	if other, ok := tx.(interface {
		Texts(ctx context.Context, query string, args ...any) ([][]string, error)
	}); ok { // a transaction of package fencepgx
		return other.Texts(ctx, text, args...)
	}
	return fenced.Texts(ctx, tx, text, args...)
}

func (s *Store) explainHold(ctx context.Context, tx Tx, err error) error {
	if state := dberr.SQLState(err); state == dberr.UndefinedFunction || state == dberr.UndefinedSchema {
		m := setuperr.LedgerFunction(s.dialect, s.options.Schema, func(query string) ([]string, error) {
			return dialectopt.Texts(ctx, tx, query)
		})
		return &sqlfence.SetupError{Missing: m.Name, SQL: m.SQL, Remedy: m.Remedy, Err: err}
	}
	return fmt.Errorf("tokens: hold: %w", dialectopt.Explain(ctx, tx, err, s.needs("SELECT, INSERT, UPDATE")))
}

// A snapshotError is a serialization failure of MySQL and MariaDB, which report none for a locking read.
type snapshotError struct{ name string }

func (e *snapshotError) Error() string {
	return fmt.Sprintf("tokens: hold: the transaction reads a snapshot from before the newest token of %q was issued; "+
		"roll the transaction back and run it again", e.name)
}

// Temporary returns true: see [sqlfence.Retry].
func (e *snapshotError) Temporary() bool { return true }
