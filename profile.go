package sqlfence

import (
	"database/sql/driver"
	"fmt"

	"github.com/sqlfence/sqlfence/internal/basedriver"
)

// A profile has the facts about a base driver and its database.
type profile struct {
	database
	basedriver.Driver
}

// DialectOf returns the dialect of a driver, fenced or not, also behind a wrapper such
// as otelsql's. If sqlfence doesn't know the driver, it returns an untyped error. It is for
// packages that send SQL of their own through a *sql.DB.
func DialectOf(d driver.Driver) (Dialect, error) {
	if f, ok := d.(*fencedDriver); ok {
		return f.settings.profile.dialect(), nil
	}
	p, ok := profileOf(d)
	if !ok {
		return 0, fmt.Errorf("sqlfence: unknown driver %T; name its dialect with WithDialect", d)
	}
	return p.dialect(), nil
}

// OwnSchema is the schema of sqlfence's own tables by [WithSchema]; empty without. Packages with SQL of their own
// ask for it.
func (d *fencedDriver) OwnSchema() string { return d.settings.schema }

// resolve returns the profile for a driver. The options may name its dialect, as d;
// 0 is for none.
func resolve(d Dialect, bases ...any) (profile, error) {
	for _, base := range bases {
		p, ok := profileOf(base)
		switch {
		case !ok:
		case d != 0 && d != p.dialect():
			return profile{}, fmt.Errorf("the driver %T speaks %v, not %v", base, p.dialect(), d)
		default:
			return p, nil
		}
	}
	db, ok := databaseOf(d)
	if !ok {
		return profile{}, fmt.Errorf("unknown driver %T; name its dialect with WithDialect", bases[0])
	}
	return profile{database: db}, nil
}

// profileOf returns the profile of a known driver, which v is or wraps.
func profileOf(v any) (profile, bool) {
	d, ok := basedriver.Find(v)
	if !ok {
		return profile{}, false
	}
	return profile{databases[d.Server-1], d}, true
}
