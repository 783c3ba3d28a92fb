package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var sqlxORM = orm{
	name:    "sqlx",
	modules: []string{"github.com/jmoiron/sqlx"},
	bases:   ormBases,
	open: func(_ testing.TB, db *ormDB) ormActions {
		all := sqlxActions{openSQLX(db)}.all()
		if db.mysql() { // no UPDATE … RETURNING
			delete(all, opReturning)
		}
		return all
	},
}

// openSQLX passes a driver name that tells sqlx the placeholder style. It sets nothing else.
func openSQLX(db *ormDB) *sqlx.DB {
	return sqlx.NewDb(db.DB, db.dialectName("postgres", "sqlite3", "mysql"))
}

type sqlxBook struct {
	ID         int64         `db:"id"`
	ISBN       string        `db:"isbn"`
	Title      string        `db:"title"`
	Price      int64         `db:"price"`
	PrequelID  sql.NullInt64 `db:"prequel_id"`
	DeletedAt  sql.NullTime  `db:"deleted_at"`
	FenceToken sql.NullInt64 `db:"fence_token"` // receives the column of SELECT *
}

type sqlxActions struct{ db *sqlx.DB }

func (x sqlxActions) all() ormActions {
	return ormActions{
		opRead:        x.read,
		opEager:       x.eager,
		opNotFound:    x.notFound,
		opCreate:      x.create,
		opCreateBatch: x.createBatch,
		opUnique:      x.unique,
		opUpdate:      func(ctx context.Context) (any, error) { return x.setPrice(ctx, 2) },
		opText:        x.text,
		opReturning:   x.returning,
		opMissing:     func(ctx context.Context) (any, error) { return x.setPrice(ctx, 99) },
		opSaveMarked:  x.save,
		opSaveMark:    x.saveMark,
		opBulk:        x.bulk,
		opIgnore:      func(ctx context.Context) (any, error) { return x.onConflict(ctx, ormIgnoring(x.mysql())) },
		opUpsert:      func(ctx context.Context) (any, error) { return x.onConflict(ctx, ormUpserting(x.mysql())) },
		opDelete:      x.delete,
		opSoftDelete:  x.softDelete,
		opCommit:      func(ctx context.Context) (any, error) { return nil, x.transaction(ctx, nil) },
		opRollback:    func(ctx context.Context) (any, error) { return nil, x.transaction(ctx, errORMRollback) },
		opNested:      x.nested,
		opPrepared:    x.prepared,
	}
}

func (x sqlxActions) mysql() bool { return x.db.DriverName() == "mysql" }

func (x sqlxActions) quote() string {
	if x.mysql() {
		return "`"
	}
	return `"`
}

func sqlxSeen(all ...sqlxBook) []ormBook {
	var seen []ormBook
	for _, b := range all {
		seen = append(seen, ormBook{ID: b.ID, ISBN: b.ISBN, Title: b.Title, Price: b.Price, Deleted: b.DeletedAt.Valid})
	}
	return seen
}

func (x sqlxActions) read(ctx context.Context) (any, error) {
	query, args, err := sqlx.In("SELECT * FROM books WHERE id IN (?) ORDER BY id", []int{1, 3})
	if err != nil {
		return nil, err
	}
	var all []sqlxBook
	err = x.db.SelectContext(ctx, &all, x.db.Rebind(query), args...)
	return sqlxSeen(all...), err
}

func (x sqlxActions) eager(ctx context.Context) (any, error) {
	var all []struct {
		sqlxBook
		Sequel struct {
			ISBN string `db:"isbn"`
		} `db:"sequel"`
	}
	err := x.db.SelectContext(ctx, &all, strings.ReplaceAll(
		`SELECT b.*, s.isbn AS "sequel.isbn" FROM books b JOIN books s ON s.prequel_id = b.id`, `"`, x.quote()))
	var seen []ormBook
	for _, b := range all {
		book := sqlxSeen(b.sqlxBook)[0]
		book.Sequels = b.Sequel.ISBN
		seen = append(seen, book)
	}
	return seen, err
}

func (x sqlxActions) notFound(ctx context.Context) (any, error) {
	var b sqlxBook
	err := x.db.GetContext(ctx, &b, x.db.Rebind("SELECT * FROM books WHERE id = ?"), 99)
	return errors.Is(err, sql.ErrNoRows), err
}

const sqlxInsert = "INSERT INTO books (isbn, title, price) VALUES (:isbn, :title, :price)"

// create reads the new record back by a named query with RETURNING. On MySQL it only reads the new id.
func (x sqlxActions) create(ctx context.Context) (any, error) {
	if x.mysql() {
		res, err := x.db.NamedExecContext(ctx, sqlxInsert, sqlxBook{ISBN: "i4", Title: "four", Price: 40})
		if err != nil {
			return nil, err
		}
		return res.LastInsertId()
	}
	rows, err := sqlx.NamedQueryContext(ctx, x.db, sqlxInsert+" RETURNING id, isbn, title, price", sqlxBook{ISBN: "i4", Title: "four", Price: 40})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []sqlxBook
	if err := sqlx.StructScan(rows, &all); err != nil {
		return nil, err
	}
	return sqlxSeen(all...), rows.Err()
}

func (x sqlxActions) createBatch(ctx context.Context) (any, error) {
	return harness.Affected(x.db.NamedExecContext(ctx, sqlxInsert, []sqlxBook{{ISBN: "i4", Title: "four", Price: 40}, {ISBN: "i5", Title: "five", Price: 50}}))
}

func (x sqlxActions) unique(ctx context.Context) (any, error) {
	_, err := x.db.NamedExecContext(ctx, sqlxInsert, sqlxBook{ISBN: "i1", Title: "again", Price: 1})
	return ormCode(err), err
}

func (x sqlxActions) setPrice(ctx context.Context, id int64) (any, error) {
	return harness.Affected(x.db.ExecContext(ctx, x.db.Rebind("UPDATE books SET price = ? WHERE id = ?"), 21, id))
}

func (x sqlxActions) text(ctx context.Context) (any, error) {
	return harness.Affected(x.db.NamedExecContext(ctx, "UPDATE books SET title = :title WHERE id = :id", sqlxBook{ID: 2, Title: ormText}))
}

func (x sqlxActions) returning(ctx context.Context) (any, error) {
	var b sqlxBook
	err := x.db.GetContext(ctx, &b, x.db.Rebind("UPDATE books SET price = ? WHERE id = ? RETURNING id, isbn, title, price"), 21, 2)
	return sqlxSeen(b), err
}

// save writes the record's fields. sqlx has read the fence column into the record and doesn't write it.
func (x sqlxActions) save(ctx context.Context) (any, error) {
	var b sqlxBook
	if err := x.db.GetContext(ctx, &b, "SELECT * FROM books WHERE id = 2"); err != nil {
		return nil, err
	}
	b.Title, b.Price = "second", 21
	n, err := harness.Affected(x.db.NamedExecContext(ctx, `UPDATE books SET title = :title, price = :price,
		prequel_id = :prequel_id, deleted_at = :deleted_at WHERE id = :id`, b))
	return fmt.Sprint(b.FenceToken, n), err
}

func (x sqlxActions) saveMark(ctx context.Context) (any, error) {
	b := sqlxBook{ID: 2, Price: 21, FenceToken: sql.NullInt64{Int64: ormMark, Valid: true}}
	return harness.Affected(x.db.NamedExecContext(ctx, "UPDATE books SET price = :price, fence_token = :fence_token WHERE id = :id", b))
}

func (x sqlxActions) bulk(ctx context.Context) (any, error) {
	return harness.Affected(x.db.NamedExecContext(ctx, "UPDATE books SET price = price + 1 WHERE price >= :price", sqlxBook{Price: 20}))
}

func (x sqlxActions) onConflict(ctx context.Context, made func(string) string) (any, error) {
	query, args, err := x.db.BindNamed(sqlxInsert, []sqlxBook{{ISBN: "i1", Title: "uno", Price: 11}, {ISBN: "i4", Title: "four", Price: 40}})
	if err != nil {
		return nil, err
	}
	return harness.Affected(x.db.ExecContext(ctx, made(query), args...))
}

func (x sqlxActions) delete(ctx context.Context) (any, error) {
	return harness.Affected(x.db.ExecContext(ctx, x.db.Rebind("DELETE FROM books WHERE id = ?"), 3))
}

func (x sqlxActions) softDelete(ctx context.Context) (any, error) {
	return harness.Affected(x.db.ExecContext(ctx, x.db.Rebind("UPDATE books SET deleted_at = ? WHERE id = ?"), ormDeletedAt, 3))
}

// transaction writes and then returns end; it commits if end is nil.
func (x sqlxActions) transaction(ctx context.Context, end error) error {
	tx, err := x.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if _, err := tx.ExecContext(ctx, tx.Rebind("UPDATE books SET price = ? WHERE id = ?"), 21, 2); err != nil {
		return err
	}
	if _, err := tx.NamedExecContext(ctx, "DELETE FROM books WHERE id = :id", sqlxBook{ID: 3}); err != nil {
		return err
	}
	if end != nil {
		return end
	}
	return tx.Commit()
}

// nested sends SAVEPOINT statements, because sqlx has no nested transactions.
func (x sqlxActions) nested(ctx context.Context) (any, error) {
	tx, err := x.db.BeginTxx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, query := range []string{
		"UPDATE books SET price = 21 WHERE id = 2", "SAVEPOINT inner_one",
		"UPDATE books SET price = 31 WHERE id = 3", "ROLLBACK TO SAVEPOINT inner_one",
		"UPDATE books SET price = 11 WHERE id = 1",
	} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return nil, err
		}
	}
	return nil, tx.Commit()
}

func (x sqlxActions) prepared(ctx context.Context) (any, error) {
	if x.mysql() {
		return x.preparedExec(ctx)
	}
	update, err := x.db.PrepareNamedContext(ctx, "UPDATE books SET price = :price WHERE id = :id RETURNING id, isbn, title, price")
	if err != nil {
		return nil, err
	}
	defer update.Close()
	var b sqlxBook
	for price := range int64(3) {
		if err := update.GetContext(ctx, &b, sqlxBook{ID: 2, Price: 21 + price}); err != nil {
			return nil, err
		}
	}
	return sqlxSeen(b), nil
}

func (x sqlxActions) preparedExec(ctx context.Context) (any, error) {
	update, err := x.db.PrepareNamedContext(ctx, "UPDATE books SET price = :price WHERE id = :id")
	if err != nil {
		return nil, err
	}
	defer update.Close()
	for price := range int64(3) {
		if _, err := update.ExecContext(ctx, sqlxBook{ID: 2, Price: 21 + price}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
