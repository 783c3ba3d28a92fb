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

// A statement that database/sql prepares after ErrSkip, and so sends twice, is reported once.
func TestSkippedExecutionIsReportedOnce(t *testing.T) {
	for _, opts := range [][]sqlfence.Option{nil, observeMode} {
		var o observed
		base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return skipper{c} }}
		db := open(t, base, slices.Concat(o.opts(), opts, []sqlfence.Option{sqlfence.WithTable("books", fenced)})...)
		ctx := t.Context()
		if opts == nil {
			ctx = sqlfence.Bypass(ctx, "repair")
		}
		if _, err := db.ExecContext(ctx, "DELETE FROM books"); err != nil {
			t.Fatal(err)
		}
		if len(o.events) != 1 {
			t.Errorf("events = %v, want one", o.events)
		}
	}
}

// refusingRows fail with a guard's error, when they are read and when they are closed.
type refusingRows struct{ driver.Rows }

func (refusingRows) Next([]driver.Value) error { return fakedb.ErrStaleAt9 }
func (refusingRows) Close() error              { return fakedb.ErrStaleAt9 }

type refusingConn struct{ *fakedb.RecorderConn }

func (c refusingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.RecorderConn.QueryContext(ctx, query, args)
	return refusingRows{rows}, err
}

// A refusal that the rows return repeatedly is reported once.
func TestRefusalOfRowsIsReportedOnce(t *testing.T) {
	var o observed
	base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return refusingConn{c} }}
	db := open(t, base, append(o.opts(), sqlfence.WithTable("books", fenced))...)
	rows, err := db.QueryContext(with(t.Context(), 7), "UPDATE books SET price = 1 RETURNING id")
	if err != nil {
		t.Fatal(err)
	}
	if rows.Next() || !errors.Is(rows.Err(), sqlfence.ErrStale) {
		t.Errorf("Next: %v, want ErrStale", rows.Err())
	}
	_ = rows.Close()
	if len(o.events) != 1 || o.events[0].Kind != sqlfence.Refused {
		t.Errorf("events = %v, want one refusal", o.events)
	}
}

// A row that was read ahead is returned once.
func TestRowReadAheadIsGivenOutOnce(t *testing.T) {
	db := open(t, new(fakedb.Recorder), serialRule)
	rows, err := db.QueryContext(sqlfence.WithSerial(t.Context(), 3), serialUpdate+" RETURNING id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []int
	for n := 0; rows.Next(); {
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		if got = append(got, n); len(got) > 3 {
			break
		}
	}
	if !slices.Equal(got, []int{1}) || rows.Err() != nil {
		t.Errorf("rows %v, %v", got, rows.Err())
	}
}

// In the simple protocol pgx might write a value over a part of a name. Such a statement is refused in Enforce mode,
// and sent unchanged in Observe mode.
func TestStatementThatPgxMisreads(t *testing.T) {
	const update = "UPDATE books SET a$1 = $1"
	for _, opts := range [][]sqlfence.Option{nil, observeMode} {
		base := new(fakedb.Recorder)
		_, err := openPostgres(t, base, append(opts, sqlfence.WithTable("books", fenced))...).ExecContext(with(t.Context(), 7), update, 30)
		if opts != nil {
			if err != nil {
				t.Error(err)
			}
			base.WantSent(t, update)
			continue
		}
		var e *sqlfence.UnguardableError
		if !errors.As(err, &e) || !strings.Contains(e.Reason, "simple protocol") || e.Offset != -1 {
			t.Errorf("error = %v", err)
		}
		base.WantSent(t)
	}
}

// A countingStmt counts the placeholders of its guarded SQL string, and records its end.
type countingStmt struct {
	*fakedb.RecorderStmt
	closed *int
}

func (s countingStmt) NumInput() int {
	n := 0
	for strings.Contains(s.Text, "?"+string(rune('1'+n))) {
		n++
	}
	return n
}
func (s countingStmt) Close() error { *s.closed++; return nil }

type countingConn struct {
	*fakedb.RecorderConn
	closed *int
}

func (c countingConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return countingStmt{&fakedb.RecorderStmt{BareStmt: fakedb.BareStmt{Recorder: c.Recorder, Text: query}}, c.closed}, nil
}

// A prepared statement takes the application's own arguments. If an execution needs a different SQL string, the
// previous form is closed.
func TestPreparedStatementCountsItsOwnArguments(t *testing.T) {
	closed := 0
	base := &fakedb.Recorder{Form: func(c *fakedb.RecorderConn) driver.Conn { return countingConn{c, &closed} }}
	db := open(t, base, sqlfence.WithTable("books", fenced, sqlfence.Optional()))
	db.SetMaxOpenConns(1)
	s, err := db.PrepareContext(t.Context(), "UPDATE books SET price = ?1")
	if err != nil {
		t.Fatal(err)
	}
	for i, ctx := range []context.Context{with(t.Context(), 7), t.Context(), with(t.Context(), 8)} {
		if _, err := s.ExecContext(ctx, 30); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if closed != i {
			t.Errorf("%d: %d statements were closed", i, closed)
		}
	}
	if _, err := s.ExecContext(with(t.Context(), 7), 30, 40); err == nil {
		t.Error("two arguments were taken for one placeholder")
	}
	if _, err := s.ExecContext(with(t.Context(), 7)); err == nil {
		t.Error("no argument was taken for one placeholder")
	}
	if err := s.Close(); err != nil || closed != 3 {
		t.Errorf("Close: %v, %d statements were closed", err, closed)
	}
}

// A statement that can't be guarded is prepared only in Observe mode.
func TestPrepareOfWhatCannotBeGuarded(t *testing.T) {
	for _, opts := range [][]sqlfence.Option{nil, observeMode} {
		var o observed
		base := new(fakedb.Recorder)
		db := open(t, base, slices.Concat(o.opts(), opts, []sqlfence.Option{sqlfence.WithTable("books", fenced)})...)
		s, err := db.PrepareContext(with(t.Context(), 7), "TRUNCATE books")
		want := sqlfence.Refused
		if opts != nil {
			want = sqlfence.WouldRefuse
			if err == nil {
				_, err = s.ExecContext(with(t.Context(), 7))
			}
			if err != nil {
				t.Error(err)
			}
			base.WantSent(t, "TRUNCATE books")
		} else if !errors.Is(err, sqlfence.ErrUnguardable) {
			t.Errorf("Prepare: %v", err)
		}
		if len(o.events) != 1 || o.events[0].Kind != want {
			t.Errorf("events = %v, want one %v", o.events, want)
		}
	}
}

// The argument of set_config may name an application's setting, but no setting that guards depend on.
func TestSettingsThatArgumentsName(t *testing.T) {
	const query = "SELECT set_config($1, $2, true)"
	base := &fakedb.Recorder{}
	db := openPostgres(t, base, sqlfence.WithTable("books", fenced))
	ways := map[string]func(name any) error{
		"executed": func(name any) error { _, err := db.Exec(query, name, "x"); return err },
		"queried": func(name any) error {
			rows, err := db.Query(query, name, "x")
			if err != nil {
				return err
			}
			return rows.Close()
		},
		"prepared": func(name any) error {
			stmt, err := db.Prepare(query)
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.Exec(name, "x")
			return err
		},
	}
	for way, run := range ways {
		for name, passes := range map[any]bool{
			"app.tenant": true, "session_replication_role": false, "Sqlfence.seen": false, "client_encoding": false, 7: false, nil: false,
		} {
			base.Sent = nil
			switch err := run(name); {
			case passes && err != nil:
				t.Errorf("%s, %v: %v", way, name, err)
			case !passes && (!errors.Is(err, sqlfence.ErrUnguardable) || slices.Contains(base.Sent, query)):
				t.Errorf("%s, %v: %v, sent %q", way, name, err, base.Sent)
			}
		}
	}
	if _, err := db.ExecContext(sqlfence.Bypass(t.Context(), "a fixture"), query, "session_replication_role", "x"); err != nil {
		t.Errorf("under Bypass: %v", err)
	}
}
