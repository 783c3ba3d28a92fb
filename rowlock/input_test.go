package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
)

// Each method refuses a wrong Edit, id or user with an error that says what is wrong, and sends nothing.
func TestBadInputIsNotSent(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		table, m := d.managed(t)
		var total int
		save := func(context.Context, *sql.Tx) error { panic("called") }
		for _, bad := range []struct {
			id, user any
			want     string
		}{
			{nil, "ada", "the key is NULL"},
			{rowlock.CompositeKey{7, 8}, "ada", "number of key values: got 2, want 1"},
			{7, nil, "means nobody"},
			{7, 1.5, "want an integer or a text"},
		} {
			edit := rowlock.Edit{ID: bad.id, Serial: 1, User: bad.user}
			errs := map[string]error{
				"Request":     second(table.Request(t.Context(), edit)),
				"Renew":       second(table.Renew(t.Context(), edit)),
				"LoadLocked":  second(table.LoadLocked(t.Context(), edit, "total", &total)),
				"Release":     table.Release(t.Context(), bad.id, bad.user),
				"SaveRelease": table.SaveRelease(t.Context(), edit, save),
				"SaveKeep":    second(table.SaveKeep(t.Context(), edit, save)),
				"IsLockedBy":  second(table.IsLockedBy(t.Context(), bad.id, bad.user)),
				"Lockable":    second(table.Lockable(t.Context(), bad.id, bad.user)),
			}
			if bad.user == "ada" {
				errs["Current"] = second(table.Current(t.Context(), bad.id))
				errs["Transfer"] = second(table.Transfer(t.Context(), bad.id, nil))
			} else {
				errs["FreeUser"] = second(m.FreeUser(t.Context(), bad.user))
			}
			for name, err := range errs {
				if !errors.Is(err, sqlfence.ErrInvalid) || !strings.HasPrefix(err.Error(), "rowlock: ") || !strings.Contains(err.Error(), bad.want) {
					t.Errorf("%s of %v by %v = %v, want %q", name, bad.id, bad.user, err, bad.want)
				}
			}
		}
		for _, err := range []error{
			second(table.LoadLocked(t.Context(), ada, "", &total)),
			second(table.LoadLocked(t.Context(), ada, "total")),
		} {
			if !errors.Is(err, sqlfence.ErrInvalid) || !strings.Contains(err.Error(), "nothing to load") {
				t.Errorf("err = %v", err)
			}
		}
		if sent := d.Sent(); len(sent) != 0 {
			t.Errorf("sent %q", texts(sent))
		}
	})
}

// The loaded columns must fit the variables.
func TestLoadMismatch(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		var total, again int
		var at time.Time
		table := d.table(t)
		if err := second(table.LoadLocked(t.Context(), ada, "total, total", &total, &again)); err != nil || total != 100 || again != 100 {
			t.Errorf("loaded %d and %d, %v", total, again, err)
		}
		for want, err := range map[string]error{
			"2 columns to load into 1 variables":       second(table.LoadLocked(t.Context(), ada, "total, total", &total)),
			"1 columns to load into 2 variables":       second(table.LoadLocked(t.Context(), ada, "total", &total, &again)),
			"unsupported Scan, storing driver.Value":   second(table.LoadLocked(t.Context(), ada, "total", &at)),
			`rowlock: load: table "invoice": the desk`: second(table.LoadLocked(t.Context(), ada, "no_such", &total)),
		} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "rowlock: load: ") {
				t.Errorf("err = %v, want %q", err, want)
			}
		}
	})
}

// The statements contain the options' column names, and the option's value for no holder.
func TestOptionsReachTheStatements(t *testing.T) {
	eachDialect(t, func(t *testing.T, d *desk) {
		d.keys, d.serial, d.by, d.since, d.expiry = []string{"region", "no"}, "version", "editor", "started", "ends"
		d.tables.rows = map[string]row{}
		key, comma := rowlock.CompositeKey{"eu", 7}, ","
		if d.dialect == sqlfence.Postgres {
			comma = ", "
		}
		spelled := `["eu"` + comma + "7]"
		d.tables.rows[spelled] = row{total: 100, serial: int64(3)}
		m, err := rowlock.NewManager(d.db, rowlock.WithDialect(d.dialect))
		if err != nil {
			t.Fatal(err)
		}
		for _, nobody := range []any{nil, int64(0), ""} {
			opts := []rowlock.Option{
				rowlock.WithKey("region", "no"), rowlock.WithSerial("version"), rowlock.WithColumns("editor", "started", "ends"),
				rowlock.WithNobody(nobody),
			}
			if nobody == nil {
				opts = append(opts, rowlock.WithManager(m))
			}
			table := d.table(t, opts...)
			lock, err := table.Request(t.Context(), rowlock.Edit{ID: key, Serial: 3, User: 12})
			if err != nil || lock.By != "12" || fmt.Sprint(d.tables.rows[spelled].by) != "12" {
				t.Errorf("%+v, %v; the row is %+v", lock, err, d.tables.rows[spelled])
			}
			if h := d.tables.held[spelled]; nobody == nil && h.user != "12" {
				t.Errorf("rowlocks has %+v", d.tables.held)
			}
			if err := table.Release(t.Context(), key, 12); err != nil || d.tables.rows[spelled].by != nobody {
				t.Errorf("after a release (%v) the row is %+v, want %#v for nobody", err, d.tables.rows[spelled], nobody)
			}
		}
	})
}
