package schema

import (
	"slices"
	"strings"
)

// A sqliteShape is what a seal has to know of a table besides.
type sqliteShape struct {
	rowNumber string          // a name of the rows' numbers; empty for a table WITHOUT ROWID
	indexes   []sqliteUnique  // what rows are unique by besides; the primary key first where there are no numbers
	triggers  []sqliteTrigger // the table's own, in the order in which they were created

	computedOf []string // where columns are generated, all others

	writesAgain bool // whether these may write a row again

	kept     []string // the columns that a write of EditLock's leaves as they are
	declared string   // the table's text

	replacesNone bool // whether it is sure that no unique key is declared ON CONFLICT REPLACE
}

// A sqliteTrigger is one of the application's triggers.
type sqliteTrigger struct{ name, sql string }

// A sqliteUnique is a unique index.
type sqliteUnique struct {
	columns []sqliteColumn
	chosen  []sqliteColumn // of a partial index: all on which it may depend whether a row is in it
	within  string         // and the condition for that, if it is to be understood
}

// A sqliteColumn is a column of a unique index.
type sqliteColumn struct {
	name      string
	collation string // of the index
	instead   string // what REPLACE stores instead of NULL; empty for NULL
}

// The rows in the way of a new one, by which it can't be stored unless it replaces them, are
// those that have the same values in a unique index. REPLACE deletes them without a trigger. So
// it has to have a token that they would take.

// inTheWay is the condition for a row to be inserted that rows with newer tokens are in its way.
func (s *sqliteShape) inTheWay(table, newer string) string {
	var ways []string
	for _, u := range s.all() {
		ways = append(ways, u.exists(table, newer))
	}
	return strings.Join(ways, " OR ")
}

// nowInTheWay is the same for a row to be updated, for the indexes in which it is given
// other values.
func (s *sqliteShape) nowInTheWay(table, newer string) string {
	var ways []string
	for _, u := range s.all() {
		ways = append(ways, "("+u.changes()+") AND "+u.exists(table, newer))
	}
	return strings.Join(ways, " OR ")
}

// renamed is the condition for a row that was updated that it is to be found by other values.
func (s *sqliteShape) renamed() string { return s.identity().changes() }

// identity returns what a row is found by.
func (s *sqliteShape) identity() sqliteUnique { return s.all()[0] }

// all returns the unique indexes and the rows' number.
func (s *sqliteShape) all() []sqliteUnique {
	if s.rowNumber == "" {
		return s.indexes
	}
	return append([]sqliteUnique{{columns: []sqliteColumn{{name: s.rowNumber}}}}, s.indexes...)
}

func (u sqliteUnique) exists(table, newer string) string {
	var same []string
	if u.within != "" {
		same = append(same, "("+u.within+")") // Verify looks for it there
	}
	for _, c := range u.columns {
		same = append(same, "way."+c.collated()+" = "+c.new())
	}
	return "EXISTS (SELECT 1 FROM " + table + " AS way WHERE " + strings.Join(same, " AND ") + " AND " + newer + ")"
}

func (u sqliteUnique) changes() string {
	var other []string
	for _, c := range append(u.columns[:len(u.columns):len(u.columns)], u.chosen...) {
		other = append(other, "OLD."+c.collated()+" IS NOT "+c.new())
	}
	return strings.Join(other, " OR ")
}

// row is the condition for the row that a trigger was fired for.
func (s *sqliteShape) row() string {
	if s.rowNumber != "" {
		number := quoteSQLite(s.rowNumber)
		return number + " = NEW." + number
	}
	var same []string
	for _, c := range s.identity().columns {
		same = append(same, c.collated()+" = NEW."+quoteSQLite(c.name))
	}
	return strings.Join(same, " AND ")
}

func (c *sqliteColumn) collated() string {
	name := quoteSQLite(c.name)
	if c.collation != "" {
		name += " COLLATE " + quoteSQLite(c.collation)
	}
	return name
}

func (c *sqliteColumn) new() string {
	name := "NEW." + quoteSQLite(c.name)
	if c.instead != "" {
		name = "IFNULL(" + name + ", " + c.instead + ")"
	}
	return name
}

// nameTriggers finds names that no trigger of another table has, which was called like this one once.
func (c *sqliteCatalog) nameTriggers() error {
	taken := make(map[string]bool)
	err := c.each("SELECT lower(name) FROM "+quoteSQLite(c.inSchema())+".sqlite_master WHERE type = 'trigger'", func(row []string) error {
		taken[row[0]] = true
		return nil
	})
	for slices.ContainsFunc(c.triggerNames(), func(name string) bool { return taken[lowerSQLite(name)] }) {
		c.number++
	}
	return err
}

// lowerSQLite is lower as SQLite has it, which knows ASCII alone, as its names do.
func lowerSQLite(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}
