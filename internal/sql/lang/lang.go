// Package lang names the databases by the SQL that they speak, and says of a text what needs no
// tables to be known: which name it is, which kind of statement, which one but for its values.
package lang

import (
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/sql/read"
)

// A Dialect is the SQL that a database speaks. The zero Dialect is none.
type Dialect uint8

// The dialects. MySQL is MariaDB's, too.
const (
	Postgres Dialect = iota + 1
	SQLite
	MySQL
)

// dialects has every dialect with its name, as its makers write it, and how it is read.
var dialects = [...]struct {
	name    string
	grammar *read.Grammar
}{
	Postgres: {"PostgreSQL", read.Postgres},
	SQLite:   {"SQLite", read.SQLite},
	MySQL:    {"MySQL", read.MySQL},
}

// String returns the dialect's name as its makers write it.
func (d Dialect) String() string {
	if d != 0 && int(d) < len(dialects) {
		return dialects[d].name
	}
	return "unknown dialect"
}

// Grammar returns how a dialect is read.
func Grammar(d Dialect) (*read.Grammar, error) {
	if d != 0 && int(d) < len(dialects) {
		return dialects[d].grammar, nil
	}
	var can []string
	for _, known := range dialects[1:] {
		can = append(can, known.name)
	}
	return nil, fmt.Errorf("%v can't be guarded yet, only %s", d, strings.Join(can, " and "))
}
