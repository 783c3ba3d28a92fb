package rowlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence"
)

// Check looks in the catalogue whether the table can be used, and returns an
// error that says all that is wrong: columns that are missing, a version that may
// be NULL or is no integer, times of another type than doc.go says, a column that
// can't say nobody, a key that isn't unique. Call it at start-up. It changes
// nothing.
func (t *Table) Check(ctx context.Context) error {
	var found map[string]column
	var unique bool
	err := t.read1(ctx, func(ctx context.Context, q querier) (err error) {
		if found, err = t.catalogue(ctx, q); err != nil {
			return err
		}
		text, args := t.uniqueKey()
		return q.QueryRowContext(ctx, text, args...).Scan(&unique)
	})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("rowlock: there is no table %q", t.name)
	}
	faults := t.faults(found)
	if !unique {
		faults = append(faults, fmt.Errorf("no unique index is on the key %s alone", list(t.keys)))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("rowlock: the table %q can't be used: %w", t.name, err)
	}
	return nil
}

// A column is one of the table that was found.
type column struct {
	typ     string // as the database writes it, in lower case
	notNull bool
}

// faults says what is wrong with the columns.
func (t *Table) faults(found map[string]column) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	c := t.columns
	for _, name := range append([]string{c.serial, c.by, c.since, c.expiry}, t.keys...) {
		if _, ok := found[name]; !ok {
			fault("it has no column %s", name)
		}
	}
	// As SQLite decides that a column holds integers.
	integer := func(typ string) bool { return strings.Contains(typ, "int") && typ != "interval" }
	if serial, ok := found[c.serial]; ok {
		if !integer(serial.typ) {
			fault("its version column %s is of type %s, want bigint", c.serial, serial.typ)
		}
		if !serial.notNull {
			fault("its version column %s may be NULL: make it NOT NULL", c.serial)
		}
	}
	if found[c.by].notNull && t.nobody == nil {
		fault("its column %s is NOT NULL: say by the option Nobody what to write for nobody", c.by)
	}
	for _, name := range []string{c.since, c.expiry} {
		switch time, ok := found[name]; {
		case !ok:
		case time.notNull && name == c.expiry:
			fault("its column %s is NOT NULL, but a lock that nobody holds has none", name)
		case t.dialect == sqlfence.Postgres && time.typ != "timestamp with time zone":
			fault("its column %s is of type %s, want timestamptz", name, time.typ)
		case t.dialect == sqlfence.SQLite && !integer(time.typ):
			fault("its column %s is of type %s, want integer, for milliseconds since 1970", name, time.typ)
		}
	}
	return faults
}

// catalogue returns the columns by their quoted names.
func (t *Table) catalogue(ctx context.Context, q querier) (map[string]column, error) {
	parts := frag{"SELECT attname, format_type(atttypid, NULL), attnotnull FROM pg_catalog.pg_attribute ",
		"WHERE attrelid = to_regclass(", arg{t.quoted}, ") AND attnum > 0 AND NOT attisdropped"}
	if t.dialect == sqlfence.SQLite {
		parts = frag{`SELECT lower(name), lower(type), "notnull" FROM `, t.pragma("table_info")}
	}
	text, args := render(t.dialect, parts)
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]column)
	for rows.Next() {
		var name string
		var c column
		if err := rows.Scan(&name, &c.typ, &c.notNull); err != nil {
			return nil, err
		}
		found[quote(t.dialect, name)] = c
	}
	return found, rows.Err()
}

// pragma is a pragma of the table, as a table.
func (t *Table) pragma(name string) frag {
	if t.schema == "" {
		return frag{"pragma_", name, "(", arg{t.table}, ")"}
	}
	return frag{"pragma_", name, "(", arg{t.table}, ", ", arg{t.schema}, ")"}
}

// uniqueKey asks whether there is a unique index of which all columns are in the key.
func (t *Table) uniqueKey() (string, []any) {
	keys := frag{"("}
	for i, name := range t.keyNames {
		if i > 0 {
			keys = append(keys, ", ")
		}
		keys = append(keys, arg{name})
	}
	keys = append(keys, ")")
	if t.dialect == sqlfence.Postgres {
		return render(t.dialect, "SELECT EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = to_regclass(", arg{t.quoted}, ") ",
			"AND indisunique AND indpred IS NULL AND indexprs IS NULL AND (SELECT bool_and(attname IN ", keys, ") ",
			"FROM pg_catalog.pg_attribute WHERE attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])))")
	}
	return render(t.dialect, "SELECT COALESCE((SELECT min(lower(name) IN ", keys, ") FROM ", t.pragma("table_info"), " WHERE pk > 0), 0) ",
		`OR EXISTS (SELECT 1 FROM `, t.pragma("index_list"), ` AS i WHERE i."unique" AND NOT i.partial `,
		"AND (SELECT min(COALESCE(lower(name), '') IN ", keys, ") FROM pragma_index_info(i.name)))")
}
