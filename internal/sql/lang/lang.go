// Package lang says of a text what needs no tables to be known: which name it is, which kind of statement,
// which one but for its values.
package lang

import (
	"github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/sql/read"
)

// grammar returns how a dialect is read.
func grammar(d dialect.Dialect) (*read.Grammar, error) {
	db, err := dialect.Of(d)
	if err != nil {
		return nil, err
	}
	return db.Grammar, nil
}
