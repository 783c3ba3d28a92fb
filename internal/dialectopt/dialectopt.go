// Package dialectopt finds the dialect for the packages that send SQL of their own.
package dialectopt

import (
	"database/sql/driver"
	"fmt"

	"github.com/sqlfence/sqlfence"
)

// Resolve returns the dialect of a driver, which the caller may name; zero names
// none. An unknown driver whose dialect isn't named, a name that contradicts a
// known driver, and a dialect that isn't supported are errors.
func Resolve(d driver.Driver, named sqlfence.Dialect) (sqlfence.Dialect, error) {
	found, unknown := sqlfence.DialectOf(d)
	switch {
	case unknown != nil && named == 0:
		return 0, fmt.Errorf("give the dialect by WithDialect: %w", unknown)
	case unknown != nil:
		found = named
	case named != 0 && named != found:
		return 0, fmt.Errorf("WithDialect says %v, but the driver %T is for %v", named, d, found)
	}
	if found != sqlfence.Postgres && found != sqlfence.SQLite {
		return 0, fmt.Errorf("%v is not supported, only %v and %v are", found, sqlfence.Postgres, sqlfence.SQLite)
	}
	return found, nil
}
