// Code generated from jet_postgres_test.go. DO NOT EDIT.

package orm_test

import (
	"time"

	"github.com/go-jet/jet/v2/sqlite"
)

// jetSQLite builds the statements with jet's package for one database. The types for the other databases have the
// same methods.
type jetSQLite struct {
	table                    sqlite.Table
	id, price, prequel, mark sqlite.ColumnInteger
	isbn, title              sqlite.ColumnString
	deletedAt                sqlite.ColumnTimestamp
}

func newJetSQLite(alias string) jetSQLite {
	j := jetSQLite{
		id: sqlite.IntegerColumn("id"), isbn: sqlite.StringColumn("isbn"), title: sqlite.StringColumn("title"),
		price: sqlite.IntegerColumn("price"), prequel: sqlite.IntegerColumn("prequel_id"),
		deletedAt: sqlite.TimestampColumn("deleted_at"), mark: sqlite.IntegerColumn("fence_token"),
	}
	j.table = sqlite.NewTable("", "books", alias, j.id, j.isbn, j.title, j.price, j.prequel, j.deletedAt, j.mark)
	return j
}

func (j jetSQLite) records() sqlite.ProjectionList {
	return sqlite.ProjectionList{j.id, j.isbn, j.title, j.price, j.deletedAt, j.mark}
}

func (j jetSQLite) dearer(price int64) jetStatement {
	return j.table.SELECT(j.records()).WHERE(j.price.GT(sqlite.Int(price))).ORDER_BY(j.id.ASC())
}

func (j jetSQLite) get(id int64) jetStatement {
	return j.table.SELECT(j.records()).WHERE(j.id.EQ(sqlite.Int(id)))
}

func (j jetSQLite) withSequels() jetStatement {
	s := newJetSQLite("sequels")
	return j.table.INNER_JOIN(s.table, s.prequel.EQ(j.id)).SELECT(j.records(), s.id, s.isbn)
}

func (j jetSQLite) insert(all []jetBook) jetStatement {
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all).RETURNING(j.records())
}

func (j jetSQLite) ignore(all []jetBook) jetStatement {
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all).ON_CONFLICT(j.isbn).DO_NOTHING()
}

func (j jetSQLite) upsert(all []jetBook) jetStatement {
	e := newJetSQLite("excluded")
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all).
		ON_CONFLICT(j.isbn).DO_UPDATE(sqlite.SET(j.title.SET(e.title), j.price.SET(e.price)))
}

func (j jetSQLite) setPrice(id, price int64) jetStatement {
	return j.table.UPDATE(j.price).SET(price).WHERE(j.id.EQ(sqlite.Int(id)))
}

func (j jetSQLite) setPriceReturning(id, price int64) jetStatement {
	return j.table.UPDATE(j.price).SET(price).WHERE(j.id.EQ(sqlite.Int(id))).RETURNING(j.records())
}

func (j jetSQLite) setTitle(id int64, title string) jetStatement {
	return j.table.UPDATE(j.title).SET(title).WHERE(j.id.EQ(sqlite.Int(id)))
}

func (j jetSQLite) save(b jetBook) jetStatement {
	return j.table.UPDATE(j.isbn, j.title, j.price, j.deletedAt).MODEL(b).WHERE(j.id.EQ(sqlite.Int(b.ID)))
}

func (j jetSQLite) saveMarked(b jetBook) jetStatement {
	return j.table.UPDATE(j.title, j.price).MODEL(b).WHERE(j.id.EQ(sqlite.Int(b.ID)))
}

func (j jetSQLite) saveMarking(b jetBook) jetStatement {
	return j.table.UPDATE(j.title, j.price, j.mark).MODEL(b).WHERE(j.id.EQ(sqlite.Int(b.ID)))
}

func (j jetSQLite) raise(least, by int64) jetStatement {
	return j.table.UPDATE(j.price).SET(j.price.ADD(sqlite.Int(by))).WHERE(j.price.GT_EQ(sqlite.Int(least)))
}

func (j jetSQLite) setPrices(id, price, otherID, otherPrice int64) jetStatement {
	prices := sqlite.CASE(j.id).WHEN(sqlite.Int64(id)).THEN(sqlite.Int64(price)).ELSE(sqlite.Int64(otherPrice))
	return j.table.UPDATE(j.price).SET(prices).WHERE(j.id.IN(sqlite.Int(id), sqlite.Int(otherID)))
}

func (j jetSQLite) remove(id int64) jetStatement {
	return j.table.DELETE().WHERE(j.id.EQ(sqlite.Int(id)))
}

func (j jetSQLite) softDelete(id int64, at time.Time) jetStatement {
	return j.table.UPDATE(j.deletedAt).SET(at).WHERE(j.id.EQ(sqlite.Int(id)))
}
