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

// A dialect has the statements that a [Store] sends to a database. A comment begins with a statement's arguments. Each
// statement is atomic.
type dialect struct {
	sqltext.Dialect
	names  sqlfence.Dialect // how the names of tables and columns are read
	server *facts.Dialect   // how its server is asked about itself

	// issue takes n tokens of name and returns the last; sql.ErrNoRows if they don't fit under the limit.
	issue func(ctx context.Context, s *Store, name string, n int64) (last int64, err error)
	// shared is issue for several names. It never waits for another transaction, and leaves out names that a
	// transaction has locked. ok is false if this database can't share statements; shared is nil if no such database
	// can.
	shared func(ctx context.Context, s *Store, all []*asking) (values map[string]int64, ok bool, err error)
	// writers is how many statements are sent at a time before the next names share one.
	writers int
	// each takes one token of each name, in order. It fails with the mark full.
	each func(ctx context.Context, s *Store, names []string) (values map[string]int64, err error)
	// adopt returns the higher token, of this and the stored one.
	adopt func(ctx context.Context, s *Store, token sqlfence.Token) (current int64, err error)
	// ensure adds missing names, in order.
	ensure func(ctx context.Context, s *Store, names []string) error
	// name: its last token, or the lower bound of its first; never NULL
	reached sqltext.Floored
	// name: the stored token
	current string
	// after, prefix: a condition on the names
	page string

	// the ledger's columns: name, type, whether an INSERT must give a value; no rows without the table
	columns string
	// a query for a fault of the table, or NULL; empty if usable and probe find all faults
	unfit string
	// the type of a column token that is too small for later timelines; empty for none
	narrow string
	probe  sqltext.Floored // fails if issue would, and changes nothing

	// reads are the options of the transaction around a single statement, nil for none.
	reads *sql.TxOptions
	// takes is reads for a statement that takes tokens: a session with an open transaction can't begin one, and a
	// rollback of its transaction can't undo the token.
	takes *sql.TxOptions

	keeping keeping // the triggers, and the function that guards call

	procedures    string        // creates those of [WithProcedures]; empty for none
	hasProcedures func() string // finds them

	// holds and holdsClaim are the statements of [Store.Hold] and [Store.HoldClaim]. They fail with a mark of raiseHeld
	// unless the rows have these values.
	holds      func(held []sqlfence.Token) (text string, args []any)
	holdsClaim func(c Claim, key any, keyText string, claim int64) (text string, args []any)
	// within sends a statement of these, which locks rows of table. Outside of a transaction it returns errOutside.
	within func(s *Store, send sender, table, text string, args []any) error

	// Within a transaction.
	before string // sent before the transaction
	// In this transaction each statement must see what was committed before the statement.
	level *sql.TxOptions
	begin []string // sent first
	lock  []string // keeps other sessions from raising tokens
	// name: waits for open guarded writes of the name
	turn []string
	// keeps other sessions from writing to a table; nil if the database has only one writer
	lockRows func(table string) string
	// floor: stores where names without a token start
	start sqltext.Floored
	// floor: the names that raise changes, and their tokens
	below string
	// floor: advances the names that have a token
	raise string
	// floor: locks and raises the lower bound of names without a row
	serve string
	// a first token that is refused at any lower bound above 0; empty if the role sees the triggers
	refused string
	// {names}: locks the names that no open transaction uses, and returns their tokens; doesn't wait
	unused string
	// the text of {names}, and its arguments
	listed func(names []string) (string, []any)
	// name: the name and the names of its rows, locked, and their tokens
	retires func(name string) (text string, args []any)
	// retire retires the name and the names of its rows.
	retire func(ctx context.Context, tx *sql.Tx, name string) (found bool, err error)
}

// issuing is an issue by a statement that returns the last token: name, count.
func issuing(f sqltext.Floored) func(ctx context.Context, s *Store, name string, n int64) (int64, error) {
	return func(ctx context.Context, s *Store, name string, n int64) (last int64, err error) {
		err = s.sendFloored(ctx, f, func(text string) (err error) {
			last, err = s.queryIn(ctx, s.dialect.takes, text, name, n)
			return err
		})
		return last, err
	}
}

// sharing is a shared by a statement that takes a JSON array. It returns for each name whether statements can be shared
// here, and the last token or NULL.
func sharing(
	f sqltext.Floored,
) func(ctx context.Context, s *Store, all []*asking) (values map[string]int64, ok bool, err error) {
	return func(ctx context.Context, s *Store, all []*asking) (values map[string]int64, ok bool, err error) {
		list, err := json.Marshal(all)
		if err != nil {
			return nil, false, err
		}
		err = s.sendFloored(ctx, f, func(text string) error {
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

// issuingEach is an each by a statement that takes a JSON array and returns names and tokens.
func issuingEach(f sqltext.Floored) func(ctx context.Context, s *Store, names []string) (map[string]int64, error) {
	return func(ctx context.Context, s *Store, names []string) (values map[string]int64, err error) {
		list, err := json.Marshal(names)
		if err != nil {
			return nil, err
		}
		err = s.sendFloored(ctx, f, func(text string) error {
			return s.in(ctx, s.dialect.takes, func(db session) (err error) {
				values, err = queryEach[int64](ctx, db, text, string(list))
				return err
			})
		})
		return values, err
	}
}

// full is the mark of the error that a statement throws if a name has no token left.
var full = sqltext.NewMark("full")

// fits makes a statement leave out rows that don't meet a condition, and raises makes it fail.
var fits = sqltext.Func(func(condition string) string { return condition })

func raises(d sqltext.Dialect) sqltext.Func {
	return func(condition string) string {
		return "CASE WHEN " + condition + " THEN " + d.Bool(true) + " ELSE " +
			sqltext.Raise(d, "'"+full+"'", "("+condition+")") +
			" IS NOT NULL END"
	}
}

// adopting is an adopt by a statement that returns the token: name, token.
func adopting(text string) func(ctx context.Context, s *Store, token sqlfence.Token) (int64, error) {
	return func(ctx context.Context, s *Store, token sqlfence.Token) (int64, error) {
		return s.queryIn(ctx, s.dialect.takes, text, token.Name, token.Value)
	}
}

// ensuring is an ensure by a statement that takes a JSON array.
func ensuring(text string) func(ctx context.Context, s *Store, names []string) error {
	return func(ctx context.Context, s *Store, names []string) error {
		list, err := json.Marshal(names)
		if err != nil {
			return err
		}
		return s.exec(ctx, text, string(list))
	}
}

// retiring is a retire by a statement: name, token.
func retiring(text string) func(ctx context.Context, tx *sql.Tx, name string) (bool, error) {
	return func(ctx context.Context, tx *sql.Tx, name string) (found bool, err error) {
		n, err := execCount(ctx, tx, text, name, int64(sqlfence.MaxToken+1))
		return n > 0, err
	}
}

var pieces = sqltext.Pieces{"max": sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10))}

// listing is a listed by a query of a JSON array.
func listing(query string) func(names []string) (string, []any) {
	return func(names []string) (string, []any) {
		list, _ := json.Marshal(names) // texts only: it can't fail
		return query, []any{string(list)}
	}
}

// render writes a statement with hand-written placeholders.
func render(d sqltext.Dialect, text string) string {
	text, _ = sqltext.Render(d, text, pieces)
	return text
}

// floored writes a statement that names {floor}.
func floored(d sqltext.Dialect, text string, more sqltext.Pieces) sqltext.Floored {
	return sqltext.NewFloored(d, text, more, pieces)
}
