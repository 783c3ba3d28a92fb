package rowlock

import (
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A frag is a piece of SQL: strings, which stand as they are, arguments and
// other frags.
type frag []any

// An arg is a value that is sent beside the text.
type arg struct{ value any }

// render writes a statement. An argument's placeholder is written once for each
// use, in the order of the text, because drivers differ in how they count them.
func render(d sqlfence.Dialect, parts ...any) (text string, args []any) {
	var b strings.Builder
	var write func(parts []any)
	write = func(parts []any) {
		for _, part := range parts {
			switch p := part.(type) {
			case string:
				b.WriteString(p)
			case frag:
				write(p)
			case arg:
				args = append(args, p.value)
				if d == sqlfence.Postgres {
					b.WriteString("$" + strconv.Itoa(len(args)))
				} else {
					b.WriteString("?")
				}
			}
		}
	}
	write(parts)
	return b.String(), args
}

// quote writes a name so that it can be nothing else.
func quote(d sqlfence.Dialect, name string) string {
	if d == sqlfence.SQLite {
		return sqltext.QuoteSQLite(name)
	}
	return sqltext.QuotePostgres(name)
}

// now is the database's clock, at the time of evaluation: in PostgreSQL now()
// would be the start of the transaction, before any waiting. SQLite's is in
// milliseconds since 1970; julianday is exact to less than one.
func now(d sqlfence.Dialect) string {
	if d == sqlfence.Postgres {
		return "clock_timestamp()"
	}
	return "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
}

// after is the time when ttl will have passed; a negative one lies in the past.
func after(d sqlfence.Dialect, ttl time.Duration) frag {
	if d == sqlfence.Postgres {
		return frag{now(d), " + CAST(", arg{ttl.Microseconds()}, " AS bigint) * interval '1 microsecond'"}
	}
	return frag{now(d), " + CAST(", arg{ttl.Milliseconds()}, " AS bigint)"}
}

// stamp turns a time of the database into an integer, the same for all drivers.
// Infinity has none and becomes NULL.
func stamp(d sqlfence.Dialect, column string) string {
	if d == sqlfence.Postgres {
		return "CAST(extract(epoch FROM CASE WHEN isfinite(" + column + ") THEN " + column + " END) * 1000000 AS bigint)"
	}
	return "(+" + column + ")" // without the type that it was declared with, which drivers go by
}

// moment turns a stamp into a time; NULL is the zero time.
func moment(d sqlfence.Dialect, stamp sql.NullInt64) time.Time {
	switch {
	case !stamp.Valid:
		return time.Time{}
	case d == sqlfence.Postgres:
		return time.UnixMicro(stamp.Int64).UTC()
	}
	return time.UnixMilli(stamp.Int64).UTC()
}

// stampOf is the stamp of a time that came from one.
func stampOf(d sqlfence.Dialect, at time.Time) int64 {
	if d == sqlfence.Postgres {
		return at.UnixMicro()
	}
	return at.UnixMilli()
}

// columns are the names that the lock of a row is found by, quoted.
type columns struct {
	dialect                   sqlfence.Dialect
	serial, by, since, expiry string
}

// free holds where nobody is named: NULL, the integer 0 or the empty text. It is
// never NULL itself.
func (c columns) free() string {
	if c.dialect == sqlfence.Postgres {
		return "(" + c.by + ` IS NULL OR to_jsonb(` + c.by + `) IN (jsonb '0', jsonb '""'))`
	}
	// typeof, because a column of texts would compare '0' with 0 as equal.
	return "(" + c.by + " IS NULL OR " + c.by + " = '' OR typeof(" + c.by + ") = 'integer' AND " + c.by + " = 0)"
}

// live holds where someone is named and the time hasn't run out.
func (c columns) live() string {
	return "(NOT " + c.free() + " AND " + c.expiry + " IS NOT NULL AND " + c.expiry + " > " + now(c.dialect) + ")"
}

// mine holds where user is named.
func (c columns) mine(user any) frag {
	return frag{"(", c.by, " IS NOT NULL AND ", c.by, " = ", arg{user}, ")"}
}

// open holds where user may take the lock: it is the user's own, or nobody's, or
// never set, or its time has run out.
func (c columns) open(user any) frag {
	return frag{"(", c.mine(user), " OR ", c.free(), " OR ", c.expiry, " IS NULL OR ", c.expiry, " <= ", now(c.dialect), ")"}
}

// version is the row's version as an integer; in SQLite as whatever is there.
func (c columns) version() string {
	if c.dialect == sqlfence.Postgres {
		return "CAST(" + c.serial + " AS bigint)"
	}
	return c.serial
}

// versioned holds where the row has a version. PostgreSQL knows no such
// comparison for a column of texts; SQLite would find the text '3' equal to 3.
func (c columns) versioned() string {
	if c.dialect == sqlfence.Postgres {
		return c.serial + " = " + c.version()
	}
	return "typeof(" + c.serial + ") = 'integer'"
}

// unchanged holds where the row is at version serial.
func (c columns) unchanged(serial int64) frag {
	return frag{c.serial, " = CAST(", arg{serial}, " AS bigint)"}
}

// list writes names with commas between.
func list(names []string) string { return strings.Join(names, ", ") }
