package serials_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sqlfence/sqlfence"
)

func (l *serialLab) param(v any) string {
	l.args = append(l.args, v)
	if l.Dialect == sqlfence.SQLite {
		return "?"
	}
	return "$" + strconv.Itoa(len(l.args))
}

var castTypes = map[sqlfence.Dialect][]string{
	sqlfence.Postgres: {"integer", "bigint", "numeric", "text"},
	sqlfence.SQLite:   {"integer", "bigint", "numeric", "text"},
	sqlfence.MySQL:    {"signed", "unsigned", "decimal(30)", "char"},
}

// value writes an expression. of is the prefix of columns, or "".
func (l *serialLab) value(of string, depth int) string {
	if depth > 0 && l.rand.IntN(2) == 0 {
		a, deeper := func() string { return l.value(of, depth-1) }, l.pick("+", "-", "case", "coalesce", "max", "brackets", "cast", "minus", "query")
		switch deeper {
		case "case":
			return "CASE WHEN " + of + "price > " + strconv.Itoa(l.rand.IntN(20)) + " THEN " + a() + " ELSE " + a() + " END"
		case "coalesce":
			return "COALESCE(" + a() + ", " + a() + ")"
		case "max":
			if l.Dialect != sqlfence.SQLite {
				return "GREATEST(" + a() + ", " + a() + ")"
			}
			return "max(" + a() + ", " + a() + ")"
		case "brackets":
			return "(" + a() + ")"
		case "cast":
			return "CAST(" + a() + " AS " + l.pick(castTypes[l.Dialect]...) + ")"
		case "minus":
			return "- " + a()
		case "query":
			return "(SELECT max(n) FROM notes WHERE n < " + a() + ")"
		}
		return a() + " " + deeper + " " + a()
	}
	switch l.rand.IntN(12) {
	case 0:
		return l.param(int64(l.rand.IntN(20) - 3))
	case 1:
		return l.param([]any{nil, int64(math.MaxInt64), "9", "abc", 9.0, 7.4, int64(1) << 40, "8"}[l.rand.IntN(8)])
	case 2:
		return l.pick("NULL", "'9'", "'abc'", "7.4", "8.5", "9e18", "1e19", "9007199254740993", "9223372036854775807", "-9223372036854775808", "true")
	case 3, 4:
		return strconv.Itoa(l.rand.IntN(20) - 3)
	case 5:
		if l.from != "" {
			return l.from
		}
	}
	return of + "serial + " + strconv.Itoa(l.rand.IntN(3))
}

// set writes a SET list that counts the write and may assign the serial.
func (l *serialLab) set(of, as string) (list string, assigns bool) {
	count := "price = " + of + "price + 1"
	name := l.pick("serial", "Serial", `"serial"`)
	row := func(x string) string {
		if l.Dialect == sqlfence.Postgres && l.rand.IntN(2) == 0 {
			return "ROW(" + x + ")"
		}
		return "(" + x + ")"
	}
	value := func() string { return l.value(as, 2) }
	nth := l.rand.IntN(8)
	if l.Dialect == sqlfence.MySQL && nth != 0 { // MySQL has no lists of columns
		nth = 5 + l.rand.IntN(3)
	}
	switch nth {
	case 0:
		return count, false
	case 1:
		return "(price, " + name + ") = " + row(of+"price + 1, "+value()), true
	case 2:
		return "(" + name + ", price) = " + row(value()+", "+of+"price + 1"), true
	case 3:
		return count + ", (isbn, " + name + ", writer) = " + row("isbn, "+value()+", 1"), true
	case 4:
		if l.Dialect == sqlfence.SQLite {
			return "(" + name + ") = " + value() + ", " + count, true
		}
		return "(" + name + ") = ROW(" + value() + "), " + count, true
	case 5:
		equals := "="
		if l.Dialect == sqlfence.SQLite {
			equals = "=="
		}
		return name + equals + value() + "," + count, true
	}
	return count + ", " + name + " = " + value(), true
}

// write writes a statement.
func (l *serialLab) write() (query string, assigns bool) {
	l.args, l.from = nil, ""
	where := l.pick("", " WHERE %sid = 1", " WHERE %sid > 3", " WHERE %sid IN (1, 2)", " WHERE %sid = 2", " WHERE %sid = 5", " WHERE %sid = 4")
	at := func(of string) string {
		if where == "" {
			return ""
		}
		return fmt.Sprintf(where, of)
	}
	kind := l.pick("update", "update", "alias", "from", "upsert", "upsert", "merge")
	if kind == "merge" && l.Dialect != sqlfence.Postgres || kind == "from" && l.Dialect == sqlfence.MySQL {
		kind = "update"
	}
	switch kind {
	case "alias":
		list, assigns := l.set("b.", "b.")
		return "UPDATE books AS b SET " + list + at("b."), assigns
	case "from":
		l.from = "notes.n"
		list, assigns := l.set("books.", "books.")
		return "UPDATE books SET " + list + " FROM notes WHERE notes.book = books.id" + strings.Replace(at("books."), "WHERE", "AND", 1), assigns
	case "upsert":
		l.from = "excluded.serial"
		id := strconv.Itoa(1 + l.rand.IntN(6))
		names, values := "id, isbn", id+", 'i"+id+"'"
		if l.rand.IntN(2) == 0 {
			names, values = names+", serial", values+", "+strconv.Itoa(l.rand.IntN(15))
		}
		list, assigns := l.set("books.", "books.")
		return "INSERT INTO books (" + names + ") VALUES (" + values + ") ON CONFLICT (id) DO UPDATE SET " + list, assigns
	case "merge":
		l.from = "notes.n"
		list, assigns := l.set("books.", "books.")
		return "MERGE INTO books USING notes ON notes.book = books.id WHEN MATCHED AND notes.book > " + strconv.Itoa(l.rand.IntN(5)) +
			" THEN UPDATE SET " + list, assigns
	}
	list, assigns := l.set("", "")
	return "UPDATE books SET " + list + at(""), assigns
}
