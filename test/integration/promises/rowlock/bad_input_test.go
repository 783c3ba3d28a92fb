package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rowlock"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// For an unusable table, Check returns the reason. An operation on a row fails and changes nothing, unless the table
// has everything that the operation needs.
func TestRowLockBadTables(t *testing.T) {
	const times = "editedsince TIME, editedexpiry TIME"
	for _, test := range []struct {
		name, columns string
		check         string // part of Check's error
		refused       bool   // the operations fail as well
		said          string // part of the operations' error on SQLite
	}{
		{"no version", "id integer PRIMARY KEY, total integer, editedby text, " + times, "it has no column", true, "no such column"},
		{"version may be NULL", "id integer PRIMARY KEY, total integer, serial bigint, editedby text, " + times, "may be NULL", true, "serial"},
		{"version is text", "id integer PRIMARY KEY, total integer, serial text NOT NULL DEFAULT '1', editedby text, " + times, "is of type text, want bigint", true, ""},
		{"no holder", "id integer PRIMARY KEY, total integer, serial bigint NOT NULL DEFAULT 1, " + times, "it has no column", true, "editedby"},
		{"no times", "id integer PRIMARY KEY, total integer, serial bigint NOT NULL DEFAULT 1, editedby text", "it has no column", true, "edited"},
		{"times are text", "id integer PRIMARY KEY, total integer, serial bigint NOT NULL DEFAULT 1, editedby text, editedsince text, editedexpiry text", "is of type text, want", false, ""},
		{"expiry isn't NULL", "id integer PRIMARY KEY, total integer, serial bigint NOT NULL DEFAULT 1, editedby text, editedsince TIME, editedexpiry TIME NOT NULL DEFAULT NOW", "is NULL while no user holds the lock", false, ""},
		{"holder isn't NULL", "id integer PRIMARY KEY, total integer, serial bigint NOT NULL DEFAULT 1, editedby text NOT NULL DEFAULT '', " + times, "with WithNobody", false, ""},
		{"no unique key", "id integer, total integer, serial bigint NOT NULL DEFAULT 1, editedby text, " + times, "no unique index", false, ""},
		{"key is unique with another", "id integer, total integer, serial bigint NOT NULL DEFAULT 1, editedby text, " + times + ", UNIQUE (id, total)", "no unique index", false, ""},
		{"unique index", "id integer NOT NULL UNIQUE, total integer, serial bigint NOT NULL DEFAULT 1, editedby text, " + times, "", false, ""},
		{"capitals", "ID integer PRIMARY KEY, Total integer, Serial BIGINT NOT NULL DEFAULT 1, EditedBy text, " + times, "", false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				typ, now := b.TimeType(), "0"
				if b.Dialect == sqlfence.Postgres {
					now = "now()"
				}
				test := test
				if b.Dialect == sqlfence.MySQL { // MySQL needs a length, and words a missing column differently
					test.check = strings.Replace(test.check, "type text", "type varchar(190)", 1)
				}
				db := b.Raw(t, b.DSN(t))
				harness.MustExec(t, db, "CREATE TABLE invoice ("+strings.NewReplacer("TIME", typ, "NOW", now).Replace(test.columns)+")")
				harness.MustExec(t, db, "INSERT INTO invoice (id, total) VALUES (7, 10)")
				table, err := rowlock.New(db, "invoice")
				if err != nil {
					t.Fatal(err)
				}
				err = table.Check(t.Context())
				if test.check == "" && err != nil || test.check != "" && (err == nil || !strings.Contains(err.Error(), test.check)) {
					t.Errorf("Check = %v, want %q", err, test.check)
				}
				if !test.refused {
					return
				}
				for _, ask := range []func() error{
					func() error { _, err := table.Request(t.Context(), edit("ada")); return err },
					func() error {
						var total int
						_, err := table.LoadLocked(t.Context(), edit("ada"), "total", &total)
						return err
					},
					func() error { return table.SaveRelease(t.Context(), edit("ada"), saving(20)) },
				} {
					err := ask()
					if err == nil || !strings.Contains(strings.NewReplacer("does not exist", "no such column", "Unknown column", "no such column").Replace(err.Error()), test.said) || strings.Count(err.Error(), "rowlock: ") != 1 {
						t.Errorf("err = %v, want one about %q", err, test.said)
					}
					if isRefusal := errors.Is(err, sqlfence.ErrConflict) || errors.Is(err, sqlfence.ErrLocked) || errors.Is(err, sqlfence.ErrGone); isRefusal {
						t.Errorf("err = %v, which blames someone else", err)
					}
				}
				var total int
				if err := db.QueryRow("SELECT total FROM invoice").Scan(&total); err != nil || total != 10 {
					t.Errorf("total = %d, %v", total, err)
				}
				if strings.Contains(test.columns, "editedby") {
					var by sql.NullString
					if err := db.QueryRow("SELECT editedby FROM invoice").Scan(&by); err != nil || by.Valid {
						t.Errorf("editedby = %v, %v", by, err)
					}
				}
			})
		})
	}
}

func TestRowLockNoTable(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		table, err := rowlock.New(b.Raw(t, b.DSN(t)), "invoice")
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Check(t.Context()); err == nil || !strings.Contains(err.Error(), `no table "invoice"`) {
			t.Errorf("Check = %v", err)
		}
		if _, err := table.Request(t.Context(), edit("ada")); err == nil || !strings.Contains(err.Error(), `rowlock: request: table "invoice"`) {
			t.Errorf("Request = %v", err)
		}
	})
}

// Locks work with names that need quotes, with a schema, with a key of two columns, and with other columns' names.
func TestRowLockNames(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		db := b.Raw(t, b.DSN(t))
		name, typ := `"In voice?"`, "timestamptz"
		number, until := `"number"`, "\"un`til\""
		switch b.Dialect {
		case sqlfence.SQLite:
			name, typ = `main."In voice?"`, "integer"
		case sqlfence.MySQL: // MySQL keeps a table's name as written, or folds it
			name, typ, number, until = "`in voice!`", "bigint", "`number`", "`un``til`"
		}
		harness.MustExec(t, db, fmt.Sprintf(`CREATE TABLE %s (region varchar(20), %s integer, ver$ion integer NOT NULL, who text, at %s, %s %[3]s, PRIMARY KEY (region, %[2]s))`, name, number, typ, until))
		harness.MustExec(t, db, fmt.Sprintf(`INSERT INTO %s (region, number, ver$ion) VALUES ('eu', 7, 3), ('us', 7, 3)`, name))
		table, err := rowlock.New(db, name, rowlock.WithKey("region", number), rowlock.WithSerial("ver$ion"), rowlock.WithColumns("who", "at", until))
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Check(t.Context()); err != nil {
			t.Error(err)
		}
		var region string
		e := rowlock.Edit{ID: rowlock.CompositeKey{"eu", 7}, Serial: 3, User: "ada"}
		if lock, err := table.LoadLocked(t.Context(), e, "region", &region); err != nil || region != "eu" || lock.By != "ada" {
			t.Errorf("LoadLocked = %+v, %v; region %q", lock, err, region)
		}
		for region, want := range map[string]bool{"eu": true, "us": false} {
			if lock, err := table.Current(t.Context(), rowlock.CompositeKey{region, 7}); err != nil || (lock.By != "") != want {
				t.Errorf("Current of %s = %+v, %v", region, lock, err)
			}
		}
	})
}

// Package rowlock and the rule EditLock agree on the values that mean no holder, in columns of both types and in IDs.
func TestNobody(t *testing.T) {
	values := map[string]bool{ // values in SQL; whether they mean no holder
		"NULL": true, "''": true, "' '": true, "0": true, "'0'": true, "'00'": true, "'-0'": true, "' 0'": true, "'0.0'": true, "' +0. '": true, "'-.00'": true,
		"7": false, "'7'": false, "'-7'": false, "'07'": false, "'ada'": false, "'0a'": false,
		"'-'": false, "'.'": false, "'+.'": false, "'0-'": false, "'0-0'": false, "'-0-'": false, "'--0'": false, "'0+.'": false, "'0 0'": false, "'0.0.0.0'": false,
		"'00000000-0000-0000-0000-000000000000'": false,
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, typ := range []string{"text", "bigint"} {
			d := &desk{Setting: harness.Setting{Base: b, Level: sql.LevelDefault}, ada: "ada", bob: "bob"}
			if typ == "bigint" {
				d.ada, d.bob = 1, 2
			}
			d.open(t)
			fenced := b.Fenced(t, d.source, sqlfence.WithTable("invoice", sqlfence.EditLock("editedby", "editedsince", "editedexpiry")))
			for value, nobody := range values {
				if typ == "bigint" && !isInteger(value) {
					continue
				}
				d.set(t, value, d.time(1800))
				lock, err := d.invoice.Current(t.Context(), 7)
				if err != nil || (lock.By == "") != nobody {
					t.Errorf("%s as %s: rowlock says that %q has the lock, %v", value, typ, lock.By, err)
				}
				_, err = fenced.ExecContext(t.Context(), "UPDATE invoice SET total = 10 WHERE id = 7")
				if errors.Is(err, sqlfence.ErrLocked) == nobody || nobody && err != nil {
					t.Errorf("%s as %s: EditLock says %v", value, typ, err)
				}
				if value == "NULL" {
					continue
				}
				// As an ID such a value is refused, whatever the columns' types are.
				var id any = strings.Trim(value, "'")
				if n, err := strconv.Atoi(value); err == nil {
					id = n
				}
				d.set(t, "NULL", "NULL")
				if _, err := d.invoice.Lockable(t.Context(), 7, id); errors.Is(err, sqlfence.ErrInvalid) != nobody {
					t.Errorf("%s as an ID: rowlock says %v", value, err)
				}
				_, err = fenced.ExecContext(sqlfence.WithEditor(t.Context(), id), "UPDATE invoice SET total = 10 WHERE id = 7")
				if (err != nil) != nobody {
					t.Errorf("%s as an ID: EditLock says %v", value, err)
				}
			}
		}
	})
}

// isInteger reports whether an integer column accepts a value in this SQL form.
func isInteger(value string) bool {
	_, err := strconv.Atoi(strings.TrimSpace(strings.Trim(value, "'")))
	return value == "NULL" || err == nil
}

// LoadLocked loads some columns, and fails for others. The failure leaves the lock as it is.
func TestRowLockLoadMismatch(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		d := &desk{Setting: harness.Setting{Base: b, Level: sql.LevelDefault}, ada: "ada", bob: "bob"}
		d.open(t)
		var total int
		var since sql.NullString
		for _, load := range []func() error{
			func() error {
				_, err := d.invoice.LoadLocked(t.Context(), edit("ada"), "total, id", &total)
				return err
			},
			func() error { _, err := d.invoice.LoadLocked(t.Context(), edit("ada"), "", &total); return err },
			func() error { _, err := d.invoice.LoadLocked(t.Context(), edit("ada"), "total"); return err },
			func() error { _, err := d.invoice.LoadLocked(t.Context(), edit("ada"), "no_such", &total); return err },
			func() error { _, err := d.invoice.LoadLocked(t.Context(), edit("ada"), "'x'", &total); return err },
		} {
			if err := load(); err == nil || !strings.HasPrefix(err.Error(), "rowlock: ") {
				t.Errorf("err = %v", err)
			}
		}
		if lock, err := d.invoice.LoadLocked(t.Context(), edit("ada"), "total, NULL", &total, &since); err != nil || total != 10 || since.Valid || lock.By != "ada" {
			t.Errorf("%+v, %v", lock, err)
		}
	})
}

// Only the database's clock counts. To move the times in the row has the same effect as to move this clock the other
// way.
func TestRowLockClockJumps(t *testing.T) {
	eachDesk(t, func(t *testing.T, d *desk) {
		d.mustRequest(t, edit(d.ada))
		// The clock jumps an hour forward: the lock has lapsed, and nothing else has changed.
		d.set(t, d.user(d.ada), d.time(-3000))
		d.mustRequest(t, edit(d.bob))
		// The clock jumps a day back after bob's request: his lock lives longer, and is still his.
		d.set(t, d.user(d.bob), d.time(86400+600))
		_, err := d.request(t, edit(d.ada))
		d.wantLocked(t, err, d.bob)
		// By this clock bob started to edit in the future, which does no harm.
		d.exec(t, "UPDATE invoice SET editedsince = "+d.time(86400))
		lock := d.mustRequest(t, edit(d.bob))
		near(t, "Since", lock.Since, time.Now().Add(24*time.Hour))
		near(t, "Expiry", lock.Expiry, time.Now().Add(10*time.Minute))
		// After all jumps of the clock an old version isn't saved, and the current one is.
		old := edit(d.bob)
		old.Serial = 0
		err = d.do(t.Context(), func(table *rowlock.Table) error { return table.SaveRelease(d.holder(t), old, saving(30)) })
		wantLockConflict(t, err, 0, 1)
		if err := d.do(t.Context(), func(table *rowlock.Table) error {
			return table.SaveRelease(d.holder(t), edit(d.bob), saving(20))
		}); err != nil {
			t.Error(err)
		}
		d.holds(t, "total = 20 AND serial = 2")
	})
}

// The time of the statement counts, not that of the transaction's start.
func TestRowLockClockOfTheStatement(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		d := &desk{Setting: s, ada: "ada", bob: "bob"}
		d.open(t)
		tx := harness.Begin(t.Context(), t, d.db, s.Level)
		if s.Dialect == sqlfence.Postgres {
			d.set(t, "'bob'", "clock_timestamp()") // after the start
		} else {
			d.set(t, "'bob'", d.time(0))
		}
		harness.Eventually(t, "bob's lock lapses", func() bool {
			lock, err := d.invoice.Current(t.Context(), 7)
			return err != nil || lock.By == ""
		})
		lock, err := d.invoice.In(tx).Request(t.Context(), edit("ada"))
		if err != nil {
			t.Fatal(err)
		}
		if held, err := d.invoice.In(tx).IsLockedBy(t.Context(), 7, "ada"); err != nil || !held {
			t.Errorf("%+v isn't live: %v, %v", lock, held, err)
		}
	})
}

// An administrator gives a lock that never lapses.
func TestRowLockForEver(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		if s.Dialect != sqlfence.Postgres {
			t.Skip("SQLite's integers have no infinity")
		}
		d := &desk{Setting: s, ada: "ada", bob: "bob"}
		d.open(t)
		for _, expiry := range []string{"infinity", "294276-12-31 23:59:59.999999Z"} {
			d.set(t, "'bob'", "'"+expiry+"'")
			lock, err := d.invoice.Current(t.Context(), 7)
			if err != nil || lock.By != "bob" || lock.Expiry.IsZero() != (expiry == "infinity") {
				t.Errorf("%s: %+v, %v", expiry, lock, err)
			}
			_, err = d.request(t, edit("ada"))
			harness.WantError(t, err, sqlfence.ErrLocked)
		}
	})
}

// A trigger undoes each change of the lock's columns. The request returns an error, and doesn't loop for ever.
func TestRowLockThatATriggerUndoes(t *testing.T) {
	harness.EachStoreSetting(t, func(t *testing.T, s harness.Setting) {
		if s.Dialect != sqlfence.Postgres {
			t.Skip("SQLite's triggers can't undo silently")
		}
		d := &desk{Setting: s, ada: "ada", bob: "bob"}
		d.open(t)
		d.exec(t, "CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
		d.exec(t, "CREATE TRIGGER undo BEFORE UPDATE ON invoice FOR EACH ROW EXECUTE FUNCTION undo()")
		if _, err := d.request(t, edit("ada")); err == nil || !strings.Contains(err.Error(), "trigger") {
			t.Errorf("err = %v", err)
		}
	})
}

// The guard also works in a save, and the lock's own statements need no token.
func TestRowLockBesideAFence(t *testing.T) {
	harness.EachSetting(t, func(t *testing.T, s harness.Setting) {
		d := &desk{Setting: s, ada: "ada", bob: "bob", fence: true}
		d.open(t)
		d.exec(t, "UPDATE invoice SET fence_token = 9")
		d.mustRequest(t, edit("ada"))
		before := d.row(t)
		for ctx, want := range map[context.Context]error{
			t.Context(): sqlfence.ErrNoFence,
			sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "invoice", Value: 8}): sqlfence.ErrStale,
		} {
			harness.WantError(t, d.invoice.SaveRelease(ctx, edit("ada"), saving(20)), want)
			if after := d.row(t); after != before {
				t.Errorf("a refused save changed %s to %s", before, after)
			}
		}
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "invoice", Value: 9})
		if err := d.invoice.SaveRelease(ctx, edit("ada"), saving(20)); err != nil {
			t.Error(err)
		}
		d.holds(t, "total = 20 AND fence_token = 9 AND editedby IS NULL")
	})
}

// A context that has ended is an error, not a refusal.
func TestRowLockEndedContext(t *testing.T) {
	harness.EachStore(t, func(t *testing.T, b harness.Base) {
		d := &desk{Setting: harness.Setting{Base: b, Level: sql.LevelDefault}, ada: "ada", bob: "bob"}
		d.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := d.invoice.Request(ctx, edit("ada"))
		harness.WantError(t, err, context.Canceled)
		harness.WantError(t, d.invoice.SaveRelease(ctx, edit("ada"), saving(20)), context.Canceled)
		d.holds(t, "editedby IS NULL AND total = 10")
	})
}
