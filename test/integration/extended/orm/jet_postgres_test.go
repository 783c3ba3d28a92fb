package orm_test

import (
	"time"

	"github.com/go-jet/jet/v2/postgres"
)

//go:generate sh -c "( echo '// Code generated from jet_postgres_test.go. DO NOT EDIT.'; echo; sed -e 's/postgres/sqlite/g; s/etPostgres/etSQLite/g; /^.*go:generate/,+1d' jet_postgres_test.go ) >jet_sqlite_test.go"

// jetPostgres builds the statements with jet's package for one database. The types for the other databases have the
// same methods.
type jetPostgres struct {
	table                    postgres.Table
	id, price, prequel, mark postgres.ColumnInteger
	isbn, title              postgres.ColumnString
	deletedAt                postgres.ColumnTimestamp
}

func newJetPostgres(alias string) jetPostgres {
	j := jetPostgres{
		id: postgres.IntegerColumn("id"), isbn: postgres.StringColumn("isbn"), title: postgres.StringColumn("title"),
		price: postgres.IntegerColumn("price"), prequel: postgres.IntegerColumn("prequel_id"),
		deletedAt: postgres.TimestampColumn("deleted_at"), mark: postgres.IntegerColumn("fence_token"),
	}
	j.table = postgres.NewTable("", "books", alias, j.id, j.isbn, j.title, j.price, j.prequel, j.deletedAt, j.mark)
	return j
}

func (j jetPostgres) records() postgres.ProjectionList {
	return postgres.ProjectionList{j.id, j.isbn, j.title, j.price, j.deletedAt, j.mark}
}

func (j jetPostgres) dearer(price int64) jetStatement {
	return j.table.SELECT(j.records()).WHERE(j.price.GT(postgres.Int(price))).ORDER_BY(j.id.ASC())
}

func (j jetPostgres) get(id int64) jetStatement {
	return j.table.SELECT(j.records()).WHERE(j.id.EQ(postgres.Int(id)))
}

func (j jetPostgres) withSequels() jetStatement {
	s := newJetPostgres("sequels")
	return j.table.INNER_JOIN(s.table, s.prequel.EQ(j.id)).SELECT(j.records(), s.id, s.isbn)
}

func (j jetPostgres) insert(all []jetBook) jetStatement {
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all).RETURNING(j.records())
}

func (j jetPostgres) ignore(all []jetBook) jetStatement {
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all).ON_CONFLICT(j.isbn).DO_NOTHING()
}

func (j jetPostgres) upsert(all []jetBook) jetStatement {
	e := newJetPostgres("excluded")
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all).
		ON_CONFLICT(j.isbn).DO_UPDATE(postgres.SET(j.title.SET(e.title), j.price.SET(e.price)))
}

func (j jetPostgres) setPrice(id, price int64) jetStatement {
	return j.table.UPDATE(j.price).SET(price).WHERE(j.id.EQ(postgres.Int(id)))
}

func (j jetPostgres) setPriceReturning(id, price int64) jetStatement {
	return j.table.UPDATE(j.price).SET(price).WHERE(j.id.EQ(postgres.Int(id))).RETURNING(j.records())
}

func (j jetPostgres) setTitle(id int64, title string) jetStatement {
	return j.table.UPDATE(j.title).SET(title).WHERE(j.id.EQ(postgres.Int(id)))
}

func (j jetPostgres) save(b jetBook) jetStatement {
	return j.table.UPDATE(j.isbn, j.title, j.price, j.deletedAt).MODEL(b).WHERE(j.id.EQ(postgres.Int(b.ID)))
}

func (j jetPostgres) saveMarked(b jetBook) jetStatement {
	return j.table.UPDATE(j.title, j.price).MODEL(b).WHERE(j.id.EQ(postgres.Int(b.ID)))
}

func (j jetPostgres) saveMarking(b jetBook) jetStatement {
	return j.table.UPDATE(j.title, j.price, j.mark).MODEL(b).WHERE(j.id.EQ(postgres.Int(b.ID)))
}

func (j jetPostgres) raise(least, by int64) jetStatement {
	return j.table.UPDATE(j.price).SET(j.price.ADD(postgres.Int(by))).WHERE(j.price.GT_EQ(postgres.Int(least)))
}

func (j jetPostgres) setPrices(id, price, otherID, otherPrice int64) jetStatement {
	prices := postgres.CASE(j.id).WHEN(postgres.Int64(id)).THEN(postgres.Int64(price)).ELSE(postgres.Int64(otherPrice))
	return j.table.UPDATE(j.price).SET(prices).WHERE(j.id.IN(postgres.Int(id), postgres.Int(otherID)))
}

func (j jetPostgres) remove(id int64) jetStatement {
	return j.table.DELETE().WHERE(j.id.EQ(postgres.Int(id)))
}

func (j jetPostgres) softDelete(id int64, at time.Time) jetStatement {
	return j.table.UPDATE(j.deletedAt).SET(at).WHERE(j.id.EQ(postgres.Int(id)))
}
