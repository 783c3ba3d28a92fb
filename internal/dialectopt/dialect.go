package dialectopt

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/core"
	"github.com/sqlfence/sqlfence/internal/fenced"
)

// Parts has a package's part for each dialect that the package supports.
type Parts[T any] struct {
	dialects []sqlfence.Dialect
	parts    []T
}

// For returns a package's parts, such as its SQL, for all dialects that sqlfence's packages support. It has a parameter
// for each dialect, so that a package without one of them doesn't compile.
func For[T any](postgres, sqlite, mysql T) Parts[T] {
	return Parts[T]{
		[]sqlfence.Dialect{sqlfence.Postgres, sqlfence.SQLite, sqlfence.MySQL},
		[]T{postgres, sqlite, mysql},
	}
}

// All returns the parts, for tests.
func (p Parts[T]) All() []T { return p.parts }

// Find returns the package's part for the dialect of a driver, which is known or named by WithDialect, and sets
// o.Schema. It records in o an unknown driver without a named dialect, a named dialect that contradicts a known driver,
// and a dialect without a part. After these errors, or an invalid WithDialect, the returned dialect is 0.
func (p Parts[T]) Find(o *Options, d driver.Driver) (part T, dialect sqlfence.Dialect) {
	if schema := fenced.Schema(d); schema != "" {
		o.Schema = schema
	}
	if o.unclear {
		return part, 0
	}
	dialect, err := resolve(d, o.named)
	if err == nil {
		part, err = p.Of(dialect)
	}
	if err != nil {
		o.Fail(err)
		return part, 0
	}
	return part, dialect
}

// Of returns the part for a dialect, or an error that names the supported dialects.
func (p Parts[T]) Of(d sqlfence.Dialect) (part T, err error) {
	if i := slices.Index(p.dialects, d); i >= 0 {
		return p.parts[i], nil
	}
	return part, fmt.Errorf("%v is not supported, only %s are", d, list(p.dialects))
}

// resolve returns the dialect of a driver. The caller may name a dialect; zero names none.
func resolve(d driver.Driver, named sqlfence.Dialect) (sqlfence.Dialect, error) {
	if err := core.Fits(d); err != nil {
		return 0, err
	}
	found, known := core.DialectOf(d)
	switch {
	case !known && named == 0:
		return 0, fmt.Errorf("unknown driver %T; name its dialect with WithDialect", d)
	case !known:
		return named, nil
	case named != 0 && named != found:
		return 0, fmt.Errorf("WithDialect says %v, but the driver %T is for %v", named, d, found)
	}
	return found, nil
}

// list returns the dialects as in a sentence: "a, b and c".
func list(dialects []sqlfence.Dialect) string {
	var names []string
	for _, d := range dialects {
		names = append(names, d.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
