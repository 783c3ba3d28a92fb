package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// A write changes books. Its query has ? for placeholders.
type write struct {
	name, query string
	args        []any
	after       string // the books of reset after the write; %d is the stored token
	meets       bool   // whether it writes an existing row
}

var writes = []write{
	{"UPDATE", "UPDATE books SET price = ? WHERE id = ?", []any{30, 1}, "1:30@%d 2:10@9 3:10@9", true},
	{"DELETE", "DELETE FROM books WHERE id = ?", []any{1}, "2:10@9 3:10@9", true},
	{"INSERT", "INSERT INTO books (id, price) VALUES (?, ?)", []any{4, 30}, "1:10@9 2:10@9 3:10@9 4:30@%d", false},
	{"upsert", "INSERT INTO books (id, price) VALUES (?, ?) " + upsert, []any{1, 30}, "1:30@%d 2:10@9 3:10@9", true},
	{"UPDATE RETURNING", "UPDATE books SET price = ? WHERE id = ? RETURNING id", []any{30, 1}, "1:30@%d 2:10@9 3:10@9",
		true},
	{"DELETE RETURNING", "DELETE FROM books WHERE id = ? RETURNING id", []any{1}, "2:10@9 3:10@9", true},
	{"INSERT RETURNING", "INSERT INTO books (id, price) VALUES (?, ?) RETURNING id", []any{4, 30},
		"1:10@9 2:10@9 3:10@9 4:30@%d", false},
	{"UPDATE without arguments", "UPDATE books SET price = 30 WHERE id = 1", nil, "1:30@%d 2:10@9 3:10@9", true},
}

// upsert is the clause that lets an INSERT update, in the checks; see [dialect.bind].
const upsert = "ON CONFLICT (id) DO UPDATE SET price = excluded.price"

// writes returns the writes that the database supports.
func (k *kit) writes() (known []write) {
	for _, w := range writes {
		if k.dialect.returning || !strings.Contains(w.query, "RETURNING") {
			known = append(known, w)
		}
	}
	return known
}

// A sender sends one write in one way.
type sender func(ctx context.Context, db *sql.DB) error

// eachWrite calls do for each write and each way to send the write, with the names of both.
func (k *kit) eachWrite(do func(what string, w write, send sender)) {
	for _, w := range k.writes() {
		for _, way := range ways {
			do(w.name+" by "+way.name, w, func(ctx context.Context, db *sql.DB) error {
				return way.run(ctx, db, k.bind(w.query), w.args...)
			})
		}
	}
}

// marked returns the table's rows after the write, with mark as the stored token of the written rows.
func (w write) marked(mark int64) string {
	if w.name == "DELETE" || w.name == "DELETE RETURNING" {
		return w.after
	}
	return fmt.Sprintf(w.after, mark)
}

type way struct {
	name string
	run  func(ctx context.Context, db *sql.DB, query string, args ...any) error
}

// ways are exec and query, prepared and not, on all that can do either.
var ways = []way{
	{"exec", func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		return execOn(ctx, db, query, args...)
	}},
	{"query", func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		return queryOn(ctx, db, query, args...)
	}},
	{"prepared exec", func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		return preparedOn(ctx, db, query, args...)
	}},
	{"prepared query", func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		return prepareOn(ctx, db, query, func(s *sql.Stmt) error { return drain(s.QueryContext(ctx, args...)) })
	}},
	{"exec in a transaction", inTx(execOn)},
	{"query in a transaction", inTx(queryOn)},
	{"prepared in a transaction", inTx(preparedOn)},
	{"tx.Stmt", func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		return prepareOn(ctx, db, query, func(s *sql.Stmt) error {
			return inTx(func(ctx context.Context, tx session, _ string, args ...any) error {
				return drain(tx.(*sql.Tx).StmtContext(ctx, s).QueryContext(ctx, args...))
			})(ctx, db, query, args...)
		})
	}},
	{"exec on a connection", onConn(execOn)},
	{"prepared on a connection", onConn(preparedOn)},
}

// A session is what sends statements: a database, a transaction, a connection.
type session interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func execOn(ctx context.Context, s session, query string, args ...any) error {
	return errorOf(s.ExecContext(ctx, query, args...))
}

func queryOn(ctx context.Context, s session, query string, args ...any) error {
	return drain(s.QueryContext(ctx, query, args...))
}

func preparedOn(ctx context.Context, s session, query string, args ...any) error {
	return prepareOn(ctx, s, query, func(stmt *sql.Stmt) error { return errorOf(stmt.ExecContext(ctx, args...)) })
}

// drain reads all rows: some drivers run a statement row by row.
func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		_ = rows.Close() // the reason is err
		return err
	}
	return rows.Close()
}

func prepareOn(ctx context.Context, s session, query string, run func(*sql.Stmt) error) error {
	stmt, err := s.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return run(stmt)
}

func inTx(
	run func(context.Context, session, string, ...any) error,
) func(context.Context, *sql.DB, string, ...any) error {
	return func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := run(ctx, tx, query, args...); err != nil {
			_ = tx.Rollback() // the reason is err
			return err
		}
		return tx.Commit()
	}
}

func onConn(
	run func(context.Context, session, string, ...any) error,
) func(context.Context, *sql.DB, string, ...any) error {
	return func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return run(ctx, c, query, args...)
	}
}
