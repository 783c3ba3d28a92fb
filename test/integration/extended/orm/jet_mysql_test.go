package orm_test

import (
	"time"

	"github.com/go-jet/jet/v2/mysql"
)

// jetMySQL builds the statements with jet's MySQL package.
type jetMySQL struct {
	table                    mysql.Table
	id, price, prequel, mark mysql.ColumnInteger
	isbn, title              mysql.ColumnString
	deletedAt                mysql.ColumnTimestamp
}

func newJetMySQL(alias string) jetMySQL {
	j := jetMySQL{
		id: mysql.IntegerColumn("id"), isbn: mysql.StringColumn("isbn"), title: mysql.StringColumn("title"),
		price: mysql.IntegerColumn("price"), prequel: mysql.IntegerColumn("prequel_id"),
		deletedAt: mysql.TimestampColumn("deleted_at"), mark: mysql.IntegerColumn("fence_token"),
	}
	j.table = mysql.NewTable("", "books", alias, j.id, j.isbn, j.title, j.price, j.prequel, j.deletedAt, j.mark)
	return j
}

func (j jetMySQL) records() mysql.ProjectionList {
	return mysql.ProjectionList{j.id, j.isbn, j.title, j.price, j.deletedAt, j.mark}
}

func (j jetMySQL) dearer(price int64) jetStatement {
	return j.table.SELECT(j.records()).WHERE(j.price.GT(mysql.Int(price))).ORDER_BY(j.id.ASC())
}

func (j jetMySQL) get(id int64) jetStatement {
	return j.table.SELECT(j.records()).WHERE(j.id.EQ(mysql.Int(id)))
}

func (j jetMySQL) withSequels() jetStatement {
	s := newJetMySQL("sequels")
	return j.table.INNER_JOIN(s.table, s.prequel.EQ(j.id)).SELECT(j.records(), s.id, s.isbn)
}

func (j jetMySQL) insert(all []jetBook) jetStatement {
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all)
}

// ignore and setPriceReturning return nil because jet has no such statements for MySQL.
func (j jetMySQL) ignore([]jetBook) jetStatement { return nil }

func (j jetMySQL) setPriceReturning(int64, int64) jetStatement { return nil }

func (j jetMySQL) upsert(all []jetBook) jetStatement {
	return j.table.INSERT(j.isbn, j.title, j.price).MODELS(all).ON_DUPLICATE_KEY_UPDATE(
		j.title.SET(mysql.StringExp(mysql.Raw("VALUES(title)"))), j.price.SET(mysql.IntExp(mysql.Raw("VALUES(price)"))))
}

func (j jetMySQL) setPrice(id, price int64) jetStatement {
	return j.table.UPDATE(j.price).SET(price).WHERE(j.id.EQ(mysql.Int(id)))
}

func (j jetMySQL) setTitle(id int64, title string) jetStatement {
	return j.table.UPDATE(j.title).SET(title).WHERE(j.id.EQ(mysql.Int(id)))
}

func (j jetMySQL) save(b jetBook) jetStatement {
	return j.table.UPDATE(j.isbn, j.title, j.price, j.deletedAt).MODEL(b).WHERE(j.id.EQ(mysql.Int(b.ID)))
}

func (j jetMySQL) saveMarked(b jetBook) jetStatement {
	return j.table.UPDATE(j.title, j.price).MODEL(b).WHERE(j.id.EQ(mysql.Int(b.ID)))
}

func (j jetMySQL) saveMarking(b jetBook) jetStatement {
	return j.table.UPDATE(j.title, j.price, j.mark).MODEL(b).WHERE(j.id.EQ(mysql.Int(b.ID)))
}

func (j jetMySQL) raise(least, by int64) jetStatement {
	return j.table.UPDATE(j.price).SET(j.price.ADD(mysql.Int(by))).WHERE(j.price.GT_EQ(mysql.Int(least)))
}

func (j jetMySQL) setPrices(id, price, otherID, otherPrice int64) jetStatement {
	prices := mysql.CASE(j.id).WHEN(mysql.Int64(id)).THEN(mysql.Int64(price)).ELSE(mysql.Int64(otherPrice))
	return j.table.UPDATE(j.price).SET(prices).WHERE(j.id.IN(mysql.Int(id), mysql.Int(otherID)))
}

func (j jetMySQL) remove(id int64) jetStatement {
	return j.table.DELETE().WHERE(j.id.EQ(mysql.Int(id)))
}

func (j jetMySQL) softDelete(id int64, at time.Time) jetStatement {
	return j.table.UPDATE(j.deletedAt).SET(at).WHERE(j.id.EQ(mysql.Int(id)))
}
