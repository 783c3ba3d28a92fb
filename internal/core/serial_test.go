package core_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

const serialUpdate = "UPDATE books SET price = 1"

var serialRule = sqlfence.WithTable("books", sqlfence.Serial("version"))

// A table with Serial and without a rule about tokens needs no token. With a rule that implies tokens the default is
// still the ledger.
func TestSerialAlone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules []sqlfence.Rule
		want  error
	}{
		{"alone", nil, nil},
		{"Ledger", []sqlfence.Rule{sqlfence.Ledger()}, sqlfence.ErrNoFence},
		{"RowFence", []sqlfence.Rule{fenced}, sqlfence.ErrNoFence},
		{"Key", []sqlfence.Rule{sqlfence.Key("id")}, sqlfence.ErrNoFence},
		{"Resource", []sqlfence.Rule{sqlfence.Resource("shelf")}, sqlfence.ErrNoFence},
		{"Optional", []sqlfence.Rule{sqlfence.Optional()}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := new(fakedb.Recorder)
			db := open(t, base, sqlfence.WithTable("books", append(tt.rules, sqlfence.Serial("version"))...))
			_, err := db.ExecContext(t.Context(), serialUpdate)
			if !errors.Is(err, tt.want) {
				t.Fatalf("err = %v, want %v", err, tt.want)
			}
			if err == nil && (len(base.Sent) != 1 || !strings.Contains(base.Sent[0], "`version` = ")) {
				t.Errorf("sent %q", base.Sent)
			}
		})
	}
}

// The serial is passed as tokens are: as an argument after the statement's own, or as a literal if the statement has no
// arguments.
func TestSerialIsAnArgument(t *testing.T) {
	base := new(fakedb.Recorder)
	db := open(t, base, serialRule)
	ctx := sqlfence.WithSerial(t.Context(), 42)
	stmt, err := db.PrepareContext(t.Context(), serialUpdate)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	for _, tt := range []struct {
		name string
		run  func() error
		args []any
		text string
	}{
		{"no arguments", func() error { _, err := db.ExecContext(ctx, serialUpdate); return err }, nil, "= 42 THEN"},
		{"arguments", func() error { _, err := db.ExecContext(ctx, serialUpdate+" WHERE id = ?", 7); return err }, []any{int64(42), int64(7)}, "= ?1 THEN"},
		{"prepared", func() error { _, err := stmt.ExecContext(ctx); return err }, []any{int64(42)}, "= ?1 THEN"},
		{"prepared, without", func() error { _, err := stmt.ExecContext(t.Context()); return err }, nil, "THEN"},
		{"the inner context", func() error { _, err := db.ExecContext(sqlfence.WithSerial(ctx, 43), serialUpdate); return err }, nil, "= 43 THEN"},
	} {
		base.Sent = nil
		if err := tt.run(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var args []any
		for _, a := range base.Args {
			args = append(args, a.Value)
		}
		if len(base.Sent) != 1 || !strings.Contains(base.Sent[0], tt.text) || !slices.Equal(args, tt.args) {
			t.Errorf("%s: sent %q with %v, want %q with %v", tt.name, base.Sent, args, tt.text, tt.args)
		}
	}
}

// The driver's count, or the first row, shows whether the row existed.
func TestSerialOfNoRow(t *testing.T) {
	var told []sqlfence.EventKind
	observer := sqlfence.WithObserver(func(_ context.Context, e sqlfence.Event) { told = append(told, e.Kind) })
	unknown := errors.New("not counted")
	for _, tt := range []struct {
		name string
		base *fakedb.Recorder
		mode sqlfence.Mode
		want error
		told sqlfence.EventKind
	}{
		{"one", &fakedb.Recorder{}, sqlfence.Enforce, nil, 0},
		{"none", &fakedb.Recorder{Result: driver.RowsAffected(0), NoRow: true}, sqlfence.Enforce, sqlfence.ErrGone, sqlfence.Refused},
		{"none, observed", &fakedb.Recorder{Result: driver.RowsAffected(0), NoRow: true}, sqlfence.Observe, nil, sqlfence.WouldRefuse},
		{"unknown", &fakedb.Recorder{Result: uncounted{unknown}}, sqlfence.Enforce, sqlfence.ErrUnknownOutcome, sqlfence.Unanswered},
		{"why", &fakedb.Recorder{Result: uncounted{unknown}}, sqlfence.Enforce, unknown, sqlfence.Unanswered},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := open(t, tt.base, serialRule, observer, sqlfence.WithMode(tt.mode))
			ctx := sqlfence.WithSerial(t.Context(), 42)
			ways := []func() error{func() error { _, err := db.ExecContext(ctx, serialUpdate); return err }}
			if _, counts := tt.base.Result.(uncounted); !counts {
				ways = append(ways, func() error {
					rows, err := db.QueryContext(ctx, serialUpdate+" RETURNING id")
					if err != nil {
						return err
					}
					return rows.Close()
				})
			}
			for _, way := range ways {
				told = nil
				if err := way(); !errors.Is(err, tt.want) {
					t.Errorf("err = %v, want %v", err, tt.want)
				}
				if tt.told == 0 && len(told) > 0 || tt.told != 0 && !slices.Equal(told, []sqlfence.EventKind{tt.told}) {
					t.Errorf("told %v, want %v", told, tt.told)
				}
			}
		})
	}
}

// uncounted is the result of a driver that doesn't count rows.
type uncounted struct{ err error }

func (u uncounted) LastInsertId() (int64, error) { return 0, u.err }
func (u uncounted) RowsAffected() (int64, error) { return 0, u.err }

func TestSerialRefusalsByTheDatabase(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		is            error // nil for no error of sqlfence
		text          string
	}{
		{"conflict", "bad JSON path: 'sqlfence:nonce:conflict:0:43'", sqlfence.ErrConflict,
			`sqlfence: serial conflict: table "books": expected serial 42, but it is 43`},
		{"a negative one", "bad JSON path: 'sqlfence:nonce:conflict:0:-43'", sqlfence.ErrConflict,
			`sqlfence: serial conflict: table "books": expected serial 42, but it is -43`},
		{"assigned", "bad JSON path: 'sqlfence:nonce:assigned:0:43'", sqlfence.ErrConflict,
			`sqlfence: serial conflict: table "books": the statement assigned a serial that doesn't raise the row's, which is 43; leave the column out, it rises by itself`},
		{"assigned to a negative one", "bad JSON path: 'sqlfence:nonce:assigned:0:-43'", sqlfence.ErrConflict,
			`sqlfence: serial conflict: table "books": the statement assigned a serial that doesn't raise the row's, which is -43; leave the column out, it rises by itself`},
		{"required", "bad JSON path: 'sqlfence:nonce:required:0:43'", sqlfence.ErrNoSerial,
			`sqlfence: no serial: table "books": add the version that was read to the context, with WithSerial`},
		{"assigned nothing", "bad JSON path: 'sqlfence:nonce:assigned:0:'", nil, ""},
		{"required of no such table", "bad JSON path: 'sqlfence:nonce:required:1:43'", nil, ""},
		{"gone", "bad JSON path: 'sqlfence:nonce:gone:0:1'", sqlfence.ErrGone,
			`sqlfence: row is gone: table "books": the statement reached no row at serial 42`},
		{"no number", "bad JSON path: 'sqlfence:nonce:serial:0:it''s'", sqlfence.ErrUnguardable,
			`sqlfence: statement can't be guarded: table "books": the serial column "version" holds "it's", want an integer below 2⁶³-1; repair the row, under Bypass`},
		{"no such table", "bad JSON path: 'sqlfence:nonce:conflict:1:43'", nil, ""},
		{"a negative table", "bad JSON path: 'sqlfence:nonce:gone:-1:43'", nil, ""},
		{"no serial", "bad JSON path: 'sqlfence:nonce:conflict:0:x'", nil, ""},
		{"too large a serial", "bad JSON path: 'sqlfence:nonce:conflict:0:99999999999999999999'", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			baseErr := &baseError{tt.message}
			ctx := sqlfence.WithSerial(t.Context(), 42)
			_, err := open(t, &fakedb.Recorder{Fails: func(string) error { return baseErr }}, serialRule).ExecContext(ctx, serialUpdate)
			checkRefusal(t, err, baseErr, tt.is, tt.text)
			var n int
			err = open(t, &fakedb.Recorder{FailsNext: baseErr}, serialRule).QueryRowContext(ctx, serialUpdate+" RETURNING id").Scan(&n)
			checkRefusal(t, err, baseErr, tt.is, tt.text)
		})
	}
}

// Contradictory options are refused when the database is opened.
func TestSerialOptions(t *testing.T) {
	required := sqlfence.Required()
	for _, tt := range []struct {
		name  string
		rules []sqlfence.Rule
		want  string // empty for none
	}{
		{"none", []sqlfence.Rule{sqlfence.Serial("version")}, ""},
		{"one", []sqlfence.Rule{sqlfence.Serial("version", required)}, ""},
		{"the same rule twice", []sqlfence.Rule{sqlfence.Serial("version", required), sqlfence.Serial("version", required)}, ""},
		{"twice", []sqlfence.Rule{sqlfence.Serial("version", required, required)}, "Required twice"},
		{"nil", []sqlfence.Rule{sqlfence.Serial("version", nil)}, "Serial: nil option"},
		{"with and without", []sqlfence.Rule{sqlfence.Serial("version"), sqlfence.Serial("version", required)}, "with Required and without"},
		{"without and with", []sqlfence.Rule{sqlfence.Serial("version", required), sqlfence.Serial("version")}, "with Required and without"},
		{"of two columns", []sqlfence.Rule{sqlfence.Serial("version", required), sqlfence.Serial("serial", required)}, "Serial twice"},
		{"of no column", []sqlfence.Rule{sqlfence.Serial("", required)}, "Serial of an empty name"},
	} {
		_, err := sqlfence.WrapDriver(new(fakedb.Recorder), sqlfence.WithDialect(sqlfence.SQLite), sqlfence.WithTable("books", tt.rules...))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: err = %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A write that needs a serial isn't sent without a serial. An INSERT needs no serial.
func TestSerialRequired(t *testing.T) {
	base := new(fakedb.Recorder)
	db := open(t, base, sqlfence.WithTable("books", sqlfence.Serial("version", sqlfence.Required())), sqlfence.WithTable("pens", sqlfence.Serial("version")))
	for _, tt := range []struct {
		query string
		ctx   context.Context
		want  error
	}{
		{serialUpdate, t.Context(), sqlfence.ErrNoSerial},
		{"DELETE FROM books", t.Context(), sqlfence.ErrNoSerial},
		{serialUpdate, sqlfence.WithSerial(t.Context(), 0), nil},
		{serialUpdate, sqlfence.Bypass(t.Context(), "a repair"), nil},
		{"INSERT INTO books (id) VALUES (1)", t.Context(), nil},
		{"INSERT INTO books (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET price = 1", t.Context(), nil}, // the database decides
		{"UPDATE pens SET price = 1", t.Context(), nil},
	} {
		base.Sent = nil
		if _, err := db.ExecContext(tt.ctx, tt.query); !errors.Is(err, tt.want) || (err != nil) == (len(base.Sent) > 0) {
			t.Errorf("%s: err = %v, want %v; sent %q", tt.query, err, tt.want, base.Sent)
		}
	}
}
