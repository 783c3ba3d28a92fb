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

// dialects are the databases that a [Store] can keep the ledger in. A program makes the statements of those that it uses.
var dialects = dialectopt.For(postgres, sqlite, mysql)

// A dialect has the statements that a [Store] sends to a database. Each text is a statement, which
// is atomic by itself. A list may be empty.
type dialect struct {
	sqltext.Dialect
	names  sqlfence.Dialect // how the names of tables and columns are read
	server *facts.Dialect   // how its server is asked about itself

	// issue takes n tokens of name and returns the last; sql.ErrNoRows if they don't fit under the limit.
	issue func(ctx context.Context, s *Store, name string, n int64) (last int64, err error)
	// shared is issue for several names, and waits for no other transaction: 0 of a name that it leaves out. ok is
	// false if statements can't be shared in this database; nil if they never can.
	shared func(ctx context.Context, s *Store, all []*asking) (values map[string]int64, ok bool, err error)
	// how many statements are worth sending at a time before the next names share one
	writers int
	// takes one of each; names are in order; raises full
	each func(ctx context.Context, s *Store, names []string) (values map[string]int64, err error)
	// the higher of the token and the stored one
	adopt func(ctx context.Context, s *Store, token sqlfence.Token) (current int64, err error)
	// adds those that are missing; names are in order
	ensure func(ctx context.Context, s *Store, names []string) error
	// name: the last of its tokens, or where they begin; never NULL
	reached sqltext.Floored
	// name: the stored token
	current string
	// after, prefix: a condition on the names
	page string

	// the ledger's columns: name, type, whether an INSERT must give a value; no rows without the table
	columns string
	// a query for what is wrong with the table, or NULL; empty where usable and the probe find all
	unfit string
	// the type of a column token that is too small for later timelines; empty if there is none
	narrow string
	probe  sqltext.Floored // fails if issue would, and changes nothing

	// reads are the options of the transaction that a statement is sent in which is not
	// sent by transact; nil where the statement alone will do.
	reads *sql.TxOptions
	// takes is reads for a statement that takes tokens. What begins a transaction is refused on a connection
	// that has one open, which could be rolled back.
	takes *sql.TxOptions

	keeping keeping // of the tokens and names, and of the function that guards ask the ledger by

	procedures, hasProcedures string // creates those of [WithProcedures], and finds them; empty where there are none

	// holds and holdsClaim are the statements of [Store.Hold], for tokens in order, and of [Store.HoldClaim]. They fail
	// with a mark of raiseHeld unless the rows have these values.
	holds      func(held []sqlfence.Token) (text string, args []any)
	holdsClaim func(c Claim, key any, keyText string, claim int64) (text string, args []any)
	// within sends one of them, which locks rows of table. Outside of a transaction it is errOutside.
	within func(s *Store, send sender, table, text string, args []any) error

	// Within a transaction.
	before string // is sent before it
	// each statement sees what was committed before it
	level *sql.TxOptions
	begin []string // what comes first
	lock  []string // keeps others from raising tokens
	// name: waits for those who write under its guard
	turn []string
	// keeps others from writing to a table; nil where there is one writer only
	lockRows func(table string) string
	// floor: where names start that have no token yet
	start sqltext.Floored
	// floor: the names that raise raises, and their tokens; one without a token stays so, and starts above
	below string
	// floor: raises the names that have one
	raise string
	// the floor of the names without a row: raises it, and locks it
	serve string
	// a first token that is refused at any floor above 0; empty where the role sees the triggers
	refused string
	// of {names}: those that no open transaction uses, locked, and their tokens; waits for none
	unused string
	// what {names} stands for, and its arguments
	listed func(names []string) (string, []any)
	// name: it and the names of its rows, locked, and their tokens
	retires func(name string) (text string, args []any)
	// of it and of the names of its rows
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

// sharing is a shared by a statement that takes a JSON array, and returns for each name whether statements can be
// shared here, and the last token, which is NULL where none was taken.
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

// issuingEach is an each by a statement that takes a JSON array, and returns names and their tokens.
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

// full is the mark of what is raised where a name has no token left.
var full = sqltext.NewMark("full")

// fits has a statement leave out what doesn't meet a condition, and raises has it fail.
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

// pieces are what the statements of all dialects know besides.
var pieces = sqltext.Pieces{"max": sqltext.Raw(strconv.FormatInt(sqlfence.MaxToken, 10))}

// render writes a statement with placeholders that are written by hand.
func render(d sqltext.Dialect, text string) string {
	text, _ = sqltext.Render(d, text, pieces)
	return text
}

// floored writes a statement that names {floor}.
func floored(d sqltext.Dialect, text string, more sqltext.Pieces) sqltext.Floored {
	return sqltext.NewFloored(d, text, more, pieces)
}
