package core

import (
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialect"
)

// dialectOf maps the kind of server that a base driver connects to, to its dialect.
var dialectOf = [...]dialect.Dialect{
	basedriver.PostgreSQL: dialect.Postgres,
	basedriver.SQLite:     dialect.SQLite,
	basedriver.MySQL:      dialect.MySQL,
}

// A profile holds the capabilities of a base driver and its database.
type profile struct {
	*dialect.Database
	basedriver.Driver
}

// remote reports whether the database is reached over a connection that can be lost.
func (p profile) remote() bool { return p.Errors.Remote.Is() || p.Remote }

// isResponse reports whether err is the database's response to a failed statement that was undone. An I/O error of a
// replicated SQLite is no such response: the node doesn't know whether the other nodes will apply the write.
func (p profile) isResponse(err error) bool {
	return p.Errors.IsResponse(err) && !(p.Remote && dberr.IsIO(err))
}

// DialectOf returns the dialect of v if v is a fenced driver, or is or wraps a known driver.
func DialectOf(v any) (dialect.Dialect, bool) {
	if fenced, ok := v.(interface{ Settings() *Settings }); ok {
		return fenced.Settings().Dialect(), true
	}
	p, ok := profileOf(v)
	if !ok {
		return 0, false
	}
	return p.Dialect, true
}

// IsDialect reports whether d is a known dialect.
func IsDialect(d dialect.Dialect) bool {
	_, err := dialect.Of(d)
	return err == nil
}

// Fits returns an error if v is, or wraps, a base driver on which sqlfence can guard nothing.
func Fits(v any) error {
	if p, ok := profileOf(v); ok && p.Unfit != "" {
		return p.unfit(v)
	}
	return nil
}

func (p profile) unfit(v any) error { return fmt.Errorf("the driver %T is refused: %s", v, p.Unfit) }

// resolve returns the profile of the first base that is, or wraps, a known driver. If there is none, it returns the
// profile of the options' dialect d; d is 0 if the options name no dialect.
func resolve(d dialect.Dialect, bases ...any) (profile, error) {
	for _, base := range bases {
		p, ok := profileOf(base)
		switch {
		case !ok:
		case p.Unfit != "":
			return profile{}, p.unfit(base)
		case d != 0 && d != p.Dialect:
			return profile{}, fmt.Errorf("the driver %T speaks %v, not %v", base, p.Dialect, d)
		default:
			return p, nil
		}
	}
	db, err := dialect.Of(d)
	if err != nil {
		return profile{}, fmt.Errorf("unknown driver %T; name its dialect with WithDialect", bases[0])
	}
	return profile{Database: db}, nil
}

// profileOf returns the profile of the known driver that v is or wraps.
func profileOf(v any) (profile, bool) {
	driver, ok := basedriver.Find(v)
	if !ok {
		return profile{}, false
	}
	db, err := dialect.Of(dialectOf[driver.Server])
	return profile{db, driver}, err == nil
}
