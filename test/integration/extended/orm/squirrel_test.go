package orm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/Masterminds/squirrel"

	"github.com/sqlfence/sqlfence/test/integration/harness"
)

var squirrelORM = orm{
	name:    "squirrel",
	modules: []string{"github.com/Masterminds/squirrel"},
	bases:   ormBases,
	open: func(_ testing.TB, db *ormDB) ormActions {
		all := squirrelActions{db.DB, openSquirrel(db), db.mysql()}.all()
		if db.mysql() { // no UPDATE … RETURNING
			delete(all, opReturning)
		}
		return all
	},
}

// openSquirrel sets squirrel's placeholder style and nothing else.
func openSquirrel(db *ormDB) squirrel.StatementBuilderType {
	if db.postgres() {
		return squirrel.StatementBuilder.PlaceholderFormat(squirrel.Dollar)
	}
	return squirrel.StatementBuilder.PlaceholderFormat(squirrel.Question)
}

type squirrelActions struct {
	db *sql.DB
	sq squirrel.StatementBuilderType

	mysql bool
}

func (s squirrelActions) all() ormActions {
	return ormWrites[ormRunner]{
		database: func(context.Context) ormRunner { return s.db },
		setPrice: s.setPrice,
		remove: func(ctx context.Context, by ormRunner, id int64) (any, error) {
			return harness.Affected(s.sq.Delete("books").Where(squirrel.Eq{"id": id}).RunWith(by).ExecContext(ctx))
		},
		transaction: ormTransaction(s.db),
		exec:        ormExec,
	}.actions(ormActions{
		opRead:        s.read,
		opEager:       s.eager,
		opNotFound:    s.notFound,
		opCreate:      s.create,
		opCreateBatch: s.createBatch,
		opUnique:      s.unique,
		opText:        func(ctx context.Context) (any, error) { return s.set(ctx, 2, map[string]any{"title": ormText}) },
		opReturning:   s.returning,
		opSaveMarked:  s.save,
		opSaveMark: func(ctx context.Context) (any, error) {
			return s.set(ctx, 2, map[string]any{"price": 21, "fence_token": ormMark})
		},
		opBulk:        s.bulk,
		opBulkRecords: s.bulkRecords,
		opIgnore:      s.ignore,
		opUpsert:      s.upsert,
		opSoftDelete: func(ctx context.Context) (any, error) {
			return s.set(ctx, 3, map[string]any{"deleted_at": ormDeletedAt})
		},
		opPrepared: s.prepared,
	})
}

func (s squirrelActions) insert(all ...ormBook) squirrel.InsertBuilder {
	q := s.sq.Insert("books").Columns("isbn", "title", "price").RunWith(s.db)
	for _, b := range all {
		q = q.Values(b.ISBN, b.Title, b.Price)
	}
	return q
}

func (s squirrelActions) set(ctx context.Context, id int64, values map[string]any) (any, error) {
	return harness.Affected(s.sq.Update("books").SetMap(values).Where(squirrel.Eq{"id": id}).RunWith(s.db).ExecContext(ctx))
}

func (s squirrelActions) setPrice(ctx context.Context, by ormRunner, id, price int64) (any, error) {
	return harness.Affected(s.sq.Update("books").Set("price", price).Where(squirrel.Eq{"id": id}).RunWith(by).ExecContext(ctx))
}

func (s squirrelActions) read(ctx context.Context) (any, error) {
	rows, err := s.sq.Select("id", "isbn", "title", "price").From("books").
		Where(squirrel.Gt{"price": 10}).OrderBy("id").RunWith(s.db).QueryContext(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []ormBook
	for rows.Next() {
		var b ormBook
		if err := rows.Scan(&b.ID, &b.ISBN, &b.Title, &b.Price); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, rows.Err()
}

func (s squirrelActions) eager(ctx context.Context) (any, error) {
	var b ormBook
	err := s.sq.Select("b.id", "s.isbn").From("books b").Join("books s ON s.prequel_id = b.id").
		RunWith(s.db).QueryRowContext(ctx).Scan(&b.ID, &b.Sequels)
	return b, err
}

func (s squirrelActions) notFound(ctx context.Context) (any, error) {
	err := s.sq.Select("id").From("books").Where(squirrel.Eq{"id": 99}).RunWith(s.db).QueryRowContext(ctx).Scan(new(int64))
	return errors.Is(err, sql.ErrNoRows), err
}

func (s squirrelActions) create(ctx context.Context) (any, error) {
	if s.mysql {
		res, err := s.insert(ormNew[0]).ExecContext(ctx)
		if err != nil {
			return nil, err
		}
		return res.LastInsertId()
	}
	var id int64
	err := s.insert(ormNew[0]).Suffix("RETURNING id").QueryRowContext(ctx).Scan(&id)
	return id, err
}

func (s squirrelActions) createBatch(ctx context.Context) (any, error) {
	return harness.Affected(s.insert(ormNew...).ExecContext(ctx))
}

func (s squirrelActions) unique(ctx context.Context) (any, error) {
	_, err := s.insert(ormAgain).ExecContext(ctx)
	return ormCode(err), err
}

func (s squirrelActions) returning(ctx context.Context) (any, error) {
	var b ormBook
	err := s.sq.Update("books").Set("price", 21).Where(squirrel.Eq{"id": 2}).Suffix("RETURNING id, isbn, title, price").
		RunWith(s.db).QueryRowContext(ctx).Scan(&b.ID, &b.ISBN, &b.Title, &b.Price)
	return b, err
}

// save writes the fields that the application has read, with the fence column.
func (s squirrelActions) save(ctx context.Context) (any, error) {
	var mark int64
	err := s.sq.Select("fence_token").From("books").Where(squirrel.Eq{"id": 2}).RunWith(s.db).QueryRowContext(ctx).Scan(&mark)
	if err != nil {
		return nil, err
	}
	n, err := s.set(ctx, 2, map[string]any{"title": "second", "price": 21})
	return fmt.Sprint(mark, n), err
}

func (s squirrelActions) bulk(ctx context.Context) (any, error) {
	return harness.Affected(s.sq.Update("books").Set("price", squirrel.Expr("price + ?", 1)).
		Where(squirrel.GtOrEq{"price": 20}).RunWith(s.db).ExecContext(ctx))
}

func (s squirrelActions) bulkRecords(ctx context.Context) (any, error) {
	price := squirrel.Case("id").When("1", "11").When("3", "31")
	return harness.Affected(s.sq.Update("books").Set("price", price).Where(squirrel.Eq{"id": []int64{1, 3}}).RunWith(s.db).ExecContext(ctx))
}

func (s squirrelActions) ignore(ctx context.Context) (any, error) {
	q := s.insert(ormConflicting...)
	if s.mysql {
		q = q.Options("IGNORE")
	} else {
		q = q.Suffix(ormIgnoring(false)(""))
	}
	return harness.Affected(q.ExecContext(ctx))
}

func (s squirrelActions) upsert(ctx context.Context) (any, error) {
	return harness.Affected(s.insert(ormConflicting...).Suffix(ormUpserting(s.mysql)("")).ExecContext(ctx))
}

// prepared uses squirrel's statement cache, which keeps a prepared statement for each SQL string.
func (s squirrelActions) prepared(ctx context.Context) (any, error) {
	cache := squirrel.NewStmtCache(s.db)
	defer func() { _ = cache.Clear() }()
	for price := range 3 {
		update := s.sq.Update("books").Set("price", 21+price).Where(squirrel.Eq{"id": 2})
		if _, err := squirrel.ExecContextWith(ctx, cache, update); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
