package orm_test

import (
	"context"
	"database/sql"
	"strings"
)

// Records and helpers that several ORMs' files share.
var (
	ormNew         = []ormBook{{ISBN: "i4", Title: "four", Price: 40}, {ISBN: "i5", Title: "five", Price: 50}}
	ormAgain       = ormBook{ISBN: "i1", Title: "again", Price: 1}
	ormConflicting = []ormBook{{ISBN: "i1", Title: "uno", Price: 11}, ormNew[0]}
)

// ormIgnoring returns a function that makes an INSERT do nothing on a conflict. ormUpserting returns a function that
// makes an INSERT update the row on a conflict.
func ormIgnoring(mysql bool) func(insert string) string {
	if mysql {
		return func(insert string) string { return strings.Replace(insert, "INSERT", "INSERT IGNORE", 1) }
	}
	return func(insert string) string { return insert + " ON CONFLICT (isbn) DO NOTHING" }
}

func ormUpserting(mysql bool) func(insert string) string {
	set := " ON CONFLICT (isbn) DO UPDATE SET title = excluded.title, price = excluded.price"
	if mysql {
		set = " ON DUPLICATE KEY UPDATE title = VALUES(title), price = VALUES(price)"
	}
	return func(insert string) string { return insert + set }
}

// ormMap applies f to each record.
func ormMap[A, B any](all []A, f func(A) B) []B {
	var mapped []B
	for _, a := range all {
		mapped = append(mapped, f(a))
	}
	return mapped
}

// ormWrites has the writes of one record from which actions builds operations. H is the ORM's handle: the database or a
// transaction.
type ormWrites[H any] struct {
	database    func(ctx context.Context) H
	setPrice    func(ctx context.Context, by H, id, price int64) (any, error)
	remove      func(ctx context.Context, by H, id int64) (any, error)
	transaction func(ctx context.Context, do func(H) error) error
	exec        func(ctx context.Context, by H, query string) error // nil: no savepoints
}

// actions adds the operations that consist only of these writes to more.
func (w ormWrites[H]) actions(more ormActions) ormActions {
	more[opUpdate] = func(ctx context.Context) (any, error) { return w.setPrice(ctx, w.database(ctx), 2, 21) }
	more[opMissing] = func(ctx context.Context) (any, error) { return w.setPrice(ctx, w.database(ctx), 99, 21) }
	more[opDelete] = func(ctx context.Context) (any, error) { return w.remove(ctx, w.database(ctx), 3) }
	more[opCommit] = func(ctx context.Context) (any, error) { return nil, w.both(ctx, nil) }
	more[opRollback] = func(ctx context.Context) (any, error) { return nil, w.both(ctx, errORMRollback) }
	if w.exec != nil {
		more[opNested] = func(ctx context.Context) (any, error) { return nil, w.nested(ctx) }
	}
	return more
}

// both updates one book and deletes another, and then returns end; the transaction commits if end is nil.
func (w ormWrites[H]) both(ctx context.Context, end error) error {
	return w.transaction(ctx, func(tx H) error {
		if _, err := w.setPrice(ctx, tx, 2, 21); err != nil {
			return err
		}
		if _, err := w.remove(ctx, tx, 3); err != nil {
			return err
		}
		return end
	})
}

// nested sends SAVEPOINT statements, because these ORMs have no nested transactions.
func (w ormWrites[H]) nested(ctx context.Context) error {
	return w.transaction(ctx, func(tx H) error {
		if _, err := w.setPrice(ctx, tx, 2, 21); err != nil {
			return err
		}
		if err := w.exec(ctx, tx, "SAVEPOINT inner_one"); err != nil {
			return err
		}
		if _, err := w.setPrice(ctx, tx, 3, 31); err != nil {
			return err
		}
		if err := w.exec(ctx, tx, "ROLLBACK TO SAVEPOINT inner_one"); err != nil {
			return err
		}
		_, err := w.setPrice(ctx, tx, 1, 11)
		return err
	})
}

// An ormRunner is a *sql.DB or a *sql.Tx on which query builders run their statements.
type ormRunner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Exec(query string, args ...any) (sql.Result, error)
	Query(query string, args ...any) (*sql.Rows, error)
}

func ormExec(ctx context.Context, by ormRunner, query string) error {
	_, err := by.ExecContext(ctx, query)
	return err
}

// ormTransaction returns a function that runs do in a transaction of database/sql.
func ormTransaction(db *sql.DB) func(context.Context, func(ormRunner) error) error {
	return func(ctx context.Context, do func(ormRunner) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
}
