package tokens

import (
	"context"
	"database/sql"
	"encoding/json"
	"strconv"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	facts "github.com/sqlfence/sqlfence/internal/session"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// dialects are the databases that a [Store] can keep the ledger in. A program builds only the statements of the
// databases it uses.
var dialects = dialectopt.For(postgres, sqlite, mysql)

// A dialect has the statements that a [Store] sends to a database of one kind. Each statement is atomic.
type dialect struct {
	sqltext.Dialect
	names  sqlfence.Dialect // the database's rules for parsing names of tables and columns
	server *facts.Dialect   // the queries about the server and its settings

	// issue issues n tokens of name in one statement, and returns the highest of them. If fewer than n tokens are left
	// up to [sqlfence.MaxToken], issue issues none and returns sql.ErrNoRows.
	issue func(ctx context.Context, s *Store, name string, n int64) (last int64, err error)
	// shared issues the requested tokens of several names in one statement, and returns the highest token of each name.
	// It never waits for another transaction: it issues no token for a name that a transaction has locked, and the
	// result has 0 for this name. ok is false if this database can't share a statement among names. shared is nil if no
	// database of this kind can.
	shared func(ctx context.Context, s *Store, all []*request) (values map[string]int64, ok bool, err error)
	// writers is the number of statements that a Store has under way before further calls wait and share the next
	// statement.
	writers int
	// each issues one token for each of the names, in the slice's order, and returns the tokens by name. If a name has
	// no token left, each issues none, and its error contains the text of the variable full.
	each func(ctx context.Context, s *Store, names []string) (values map[string]int64, err error)
	// adopt stores token in the ledger unless the stored token of its name is higher, and returns the higher of the
	// two.
	adopt func(ctx context.Context, s *Store, token sqlfence.Token) (current int64, err error)
	// ensure adds a row with token 0 for each of the names that the ledger lacks. names must be sorted, so that two
	// sessions can't deadlock.
	ensure func(ctx context.Context, s *Store, names []string) error
	// reached is a query with the argument name, for the newest token of the name, or for the lower bound of first
	// tokens (see start) if that is higher. The result is never NULL.
	reached sqltext.Bounded
	// current is a query with the argument name, for the token in the name's row.
	current string
	// page is a condition with the arguments after and prefix, for the rows of one page of a list: the names that begin
	// with prefix and come after the name after.
	page string

	// columns is a query for the columns of the table fencing_tokens: name, type, and whether an INSERT must give a
	// value. It returns no row if the table is missing.
	columns string
	// unfit is a query for a fault of the table fencing_tokens that neither the function usable nor the statement probe
	// finds, or for NULL. It is empty if they find all faults.
	unfit string
	// narrow is an SQL type of the ledger's column token that is too small for the tokens after a failover (see
	// checkNarrow). It is empty if Setup accepts no such type in this database.
	narrow string
	probe  sqltext.Bounded // fails if a missing column or privilege makes issue fail, and changes nothing

	// reads are the options of the transaction that surrounds a single statement. If reads is nil, the statement is
	// sent without a transaction.
	reads *sql.TxOptions
	// takes is the same as reads for a statement that issues or adopts tokens. On SQLite takes begins a transaction,
	// which fails in a session with an open transaction: a rollback of the open transaction would undo the issued
	// token.
	takes *sql.TxOptions

	keeping keeping // the ledger's triggers, and the function that guards call

	procedures    string        // creates the procedures of [WithProcedures]; empty if the database can't have them
	hasProcedures func() string // a query that returns a row if the procedures exist

	// holds and holdsClaim return the statements of [Store.Hold] and [Store.HoldClaim] for a server with the
	// capabilities on. The first takes args and locks the rows. They throw an error of throwHeld unless the rows store
	// the held tokens or the claim.
	holds      func(on *facts.Capabilities, held []sqlfence.Token) (texts []string, args []any)
	holdsClaim func(on *facts.Capabilities, c Claim, key any, keyText string, claim int64) (texts []string, args []any)
	// within sends the first statement of holds or holdsClaim, text. Outside of a transaction it returns errOutside.
	within func(s *Store, send sender, table, text string, args []any) error

	// The following fields are for transactions of several statements, which [Store.transact] begins.

	// before ends a transaction that is open on the connection, before another begins; nil if none can be.
	before func(send func(text string) error) error
	// level is the transaction's isolation: each statement must see what other sessions have committed before the
	// statement begins.
	level *sql.TxOptions
	begin []string // the transaction's first statements
	lock  []string // locks the ledger, so that no other session advances a token before the transaction ends
	// awaitWrites, with the argument name, waits for open transactions that wrote with the name's tokens under Ledger.
	awaitWrites []string
	// lockRows returns a statement that keeps other sessions from writing to a table until the transaction ends. It is
	// nil if the database has only one writer.
	lockRows func(table string) string
	// start raises the lower bound, above which the first token of a new name must be, to its argument.
	start sqltext.Bounded
	// below is a query for the names, and their tokens, that advance would change.
	below string
	// advance advances each token below its argument to the argument.
	advance string
	// serve locks the lower bound of first tokens until the transaction ends, and raises it to its argument.
	serve string
	// refused tests the triggers for roles that can't see them (otherwise it is empty): an INSERT of a first token that
	// the triggers must refuse if the lower bound of first tokens is above 0.
	refused string
	// unused locks those of {names} that no open transaction uses, and returns them with their tokens. It doesn't wait.
	unused string
	// listed returns the SQL that replaces {names} in a statement, and its arguments.
	listed func(names []string) (string, []any)
	// retires returns a query for the name and the names of its rows, such as books/42 for the name books, and their
	// tokens. If the statements in the field lock don't lock the ledger's rows, the query does.
	retires func(name string) (text string, args []any)
	// retire retires the name and the names of its rows: it stores a number above the highest token, so that no token
	// of these names can be issued any more. found is false if the ledger has none of these names.
	retire func(ctx context.Context, tx *sql.Tx, name string) (found bool, err error)
}

// issuing returns the function issue of a dialect. f is a statement with the arguments name and count, which returns
// the last of the issued tokens.
func issuing(f sqltext.Bounded) func(ctx context.Context, s *Store, name string, n int64) (int64, error) {
	return func(ctx context.Context, s *Store, name string, n int64) (last int64, err error) {
		err = s.sendBounded(ctx, f, func(text string) (err error) {
			last, err = s.queryIn(ctx, s.dialect.takes, text, name, n)
			return err
		})
		return last, err
	}
}

// sharing returns a dialect's function shared, which issues tokens of several names by one statement. f is this
// statement, with a JSON array of requests as its argument. For each name the statement returns whether this database
// can share statements, and the last token that the statement issued, or NULL if it issued none.
func sharing(
	f sqltext.Bounded,
) func(ctx context.Context, s *Store, all []*request) (values map[string]int64, ok bool, err error) {
	return func(ctx context.Context, s *Store, all []*request) (values map[string]int64, ok bool, err error) {
		list, err := json.Marshal(all)
		if err != nil {
			return nil, false, err
		}
		err = s.sendBounded(ctx, f, func(text string) error {
			values, ok = make(map[string]int64, len(all)), true
			scan := func(rows *sql.Rows) error {
				var name string
				var here bool
				var last sql.NullInt64
				err := rows.Scan(&name, &here, &last)
				values[name], ok = last.Int64, ok && here
				return err
			}
			return s.in(ctx, s.dialect.takes, func(db session) error {
				return dialectopt.EachRow(ctx, db, scan, text, string(list))
			})
		})
		return values, ok, err
	}
}

// issuingEach returns the function each of a dialect. f is a statement with a JSON array of names as its argument,
// which returns each name and its token.
func issuingEach(f sqltext.Bounded) func(ctx context.Context, s *Store, names []string) (map[string]int64, error) {
	return func(ctx context.Context, s *Store, names []string) (values map[string]int64, err error) {
		list, err := json.Marshal(names)
		if err != nil {
			return nil, err
		}
		err = s.sendBounded(ctx, f, func(text string) error {
			return s.in(ctx, s.dialect.takes, func(db session) (err error) {
				values, err = queryEach[int64](ctx, db, text, string(list))
				return err
			})
		})
		return values, err
	}
}

// full is a text in the error that a statement of the function each throws if a name has no token left. The text
// contains a random part, so that no other error contains it.
var full = sqltext.NewMarker("full")

// fits and throws are two ways of writing {fit condition} in a statement that issues tokens. With fits the statement
// issues no token for a name that doesn't meet the condition; with throws it throws the error full instead.
var fits = sqltext.Func(func(condition string) string { return condition })

func throws(d sqltext.Dialect) sqltext.Func {
	return func(condition string) string {
		return "CASE WHEN " + condition + " THEN " + d.Bool(true) + " ELSE " +
			sqltext.Throw(d, "'"+full+"'", "("+condition+")") +
			" IS NOT NULL END"
	}
}

// adopting returns the function adopt of a dialect. text is a statement with the arguments name and token, which
// returns the stored token.
func adopting(text string) func(ctx context.Context, s *Store, token sqlfence.Token) (int64, error) {
	return func(ctx context.Context, s *Store, token sqlfence.Token) (int64, error) {
		return s.queryIn(ctx, s.dialect.takes, text, token.Name, token.Value)
	}
}

// ensuring returns the function ensure of a dialect. text is a statement with a JSON array of names as its argument.
func ensuring(text string) func(ctx context.Context, s *Store, names []string) error {
	return func(ctx context.Context, s *Store, names []string) error {
		list, err := json.Marshal(names)
		if err != nil {
			return err
		}
		return s.exec(ctx, text, string(list))
	}
}

// retiring returns the function retire of a dialect. text is a statement with the arguments name and new token.
func retiring(text string) func(ctx context.Context, tx *sql.Tx, name string) (bool, error) {
	return func(ctx context.Context, tx *sql.Tx, name string) (found bool, err error) {
		n, err := execCount(ctx, tx, text, name, int64(sqlfence.MaxToken+1))
		return n > 0, err
	}
}

var fragments = sqltext.Fragments{"max": sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10))}

// listing returns the function listed of a dialect. query reads the names from a JSON array, which is its argument.
func listing(query string) func(names []string) (string, []any) {
	return func(names []string) (string, []any) {
		list, _ := json.Marshal(names) // texts only: it can't fail
		return query, []any{string(list)}
	}
}

// render builds a statement from a template that contains its own placeholders.
func render(d sqltext.Dialect, text string) string {
	text, _ = sqltext.Render(d, text, fragments)
	return text
}

// bounded builds a statement from a template that contains {floor}, the lower bound of all later tokens.
func bounded(d sqltext.Dialect, text string, more sqltext.Fragments) sqltext.Bounded {
	return sqltext.NewBounded(d, text, more, fragments)
}
