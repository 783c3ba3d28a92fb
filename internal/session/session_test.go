package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/internal/sql/lex"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// An answering server throws the guard's error with the facts in says, and answers each query by the words in it.
type answering struct {
	raises error // nil for the guard's error
	says   string
	rows   map[string][][]string
	fails  error
	asked  []string
}

func (s *answering) Query(_ context.Context, query string) (rows [][]string, err error) {
	s.asked = append(s.asked, query)
	for part, answer := range s.rows {
		if strings.Contains(query, part) {
			rows = append(rows, answer...)
		}
	}
	return rows, s.fails
}

func (s *answering) Exec(_ context.Context, query string) error {
	s.asked = append(s.asked, query)
	if s.fails != nil || s.raises != nil {
		return errors.Join(s.fails, s.raises)
	}
	return fakedb.ProbeError(query, func(string) (string, error) { return s.says, nil })
}

func (s *answering) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	if len(s.asked) != len(want) {
		t.Errorf("asked %q, want %q", s.asked, want)
		return
	}
	for i := range want {
		if !strings.Contains(s.asked[i], want[i]) {
			t.Errorf("asked %q, want %q in it", s.asked[i], want[i])
		}
	}
	s.asked = nil
}

// The session's settings are queried again, if they matter, after they may have changed.
func TestSettingsAreForgotten(t *testing.T) {
	srv := &answering{says: "8.4.0 ......", rows: map[string][][]string{"SHOW": {{"sql_select_limit", "10000"}, {"character_set_client", "gbk"}, {"sql_mode", "A,SIMULTANEOUS_ASSIGNMENT"}, {"Wsrep_provider", "lib"}}}}
	s := New(MySQL, new(Database), new(Wants))
	know := func(m Moment) {
		t.Helper()
		if err := s.Know(t.Context(), srv, m); err != nil {
			t.Error(err)
		}
	}
	know(Moment{InTx: true})
	if want := (Capabilities{Version: "8.4.0", Apart: "one server writes to the database, and this is one of several (Galera, or Group Replication with several primaries)", Escapes: lex.EscapesAll | lex.GBK, AssignsAtOnce: true, Clips: true}); !reflect.DeepEqual(s.Capabilities, want) {
		t.Errorf("%+v, want %+v", s.Capabilities, want)
	}
	know(Moment{Settings: true})
	srv.wantAsked(t, "@@version", "IS_FREE_LOCK", "SHOW VARIABLES")
	s.Follow(t.Context(), srv, "SET NAMES gbk")
	know(Moment{})
	srv.wantAsked(t)
	srv.rows = map[string][][]string{"SHOW": {{"sql_select_limit", "10000"}, {"character_set_client", "utf8mb4"}, {"sql_mode", "STRICT_ALL_TABLES"}, {"wsrep_provider", "none"}, {"group_replication_single_primary_mode", "ON"}}}
	know(Moment{Settings: true})
	srv.wantAsked(t, "SHOW VARIABLES")
	if !reflect.DeepEqual(s.Capabilities, Capabilities{Version: "8.4.0", Escapes: lex.EscapesAll}) {
		t.Errorf("%+v", s.Capabilities)
	}
}

// A session may limit the rows of each response. Then the variables are read by a query with a limit of its own.
func TestALimitOfTheSessionHidesNoVariable(t *testing.T) {
	for name, rows := range map[string][][]string{
		"no row":      nil,
		"some rows":   {{"character_set_client", "utf8mb4"}},
		"a low limit": {{"character_set_client", "utf8mb4"}, {"sql_select_limit", "2"}},
	} {
		srv := &answering{says: "8.4.0 ......", rows: map[string][][]string{"SHOW": rows,
			"SELECT variable_name": {{"wsrep_provider", "lib"}, {"sql_select_limit", "2"}}}}
		s := New(MySQL, new(Database), new(Wants))
		if err := s.Know(t.Context(), srv, Moment{}); err != nil || s.Apart == "" {
			t.Errorf("%s: %v, %+v", name, err, s.Capabilities)
		}
	}
}

// A server is TiDB if it has TiDB's variable, whatever its version string is. The name TiDB alone isn't enough.
func TestTiDBIsKnown(t *testing.T) {
	for _, says := range []string{"8.0.11-TiDB-v8.5.6 ....", "8.0.11 ...."} {
		srv := &answering{says: says, rows: map[string][][]string{"SHOW": {{"character_set_client", "utf8mb4"}, {"sql_mode", ""}, {"version_comment", "TiDB Server"}, {"tidb_txn_mode", ""}}}}
		s := New(MySQL, new(Database), new(Wants))
		if err := s.Know(t.Context(), srv, Moment{}); err != nil || !s.LocksAlone || !s.SetReadsOldRow || s.Unfit != "" {
			t.Errorf("%v, %+v", err, s.Capabilities)
		}
		for _, setting := range [][]string{{"tidb_dml_type", "bulk"}, {"tidb_batch_insert", "ON"}, {"tidb_constraint_check_in_place_pessimistic", "OFF"}} {
			srv.rows["SHOW"] = append(srv.rows["SHOW"][:4:4], setting)
			s.Changed()
			if err := s.Know(t.Context(), srv, Moment{Settings: true}); err != nil || !strings.Contains(s.Unfit, setting[0]) {
				t.Errorf("%v: %v, %q", setting, err, s.Unfit)
			}
		}
		srv.rows["SHOW"] = [][]string{{"version_comment", "TiDB Server"}}
		s = New(MySQL, new(Database), new(Wants))
		if err := s.Know(t.Context(), srv, Moment{}); !strings.Contains(fmt.Sprint(err), "the server is TiDB") {
			t.Errorf("%v, want a refusal", err)
		}
	}
}

// A server is Vitess if vtgate answers so to the version query. MySQL behind vtgate answers the canary with another
// version. The name in MySQL's version alone isn't enough.
func TestVitessIsKnown(t *testing.T) {
	rows := func(version, mode string) map[string][][]string {
		return map[string][][]string{"@@version": {{version, "Version: 24.0.4"}}, "SHOW": {{"character_set_client", "utf8mb4"}, {"sql_select_limit", "10000"}, {"sql_mode", mode}}}
	}
	srv := &answering{says: "9.7.4 ......", rows: rows("8.4.6-Vitess", "")}
	s := New(MySQL, new(Database), new(Wants))
	if err := s.Know(t.Context(), srv, Moment{}); err != nil || s.Apart == "" || s.LocksAlone || s.Unfit != "" || s.Text == nil {
		t.Errorf("%v, %+v", err, s.Capabilities)
	}
	srv.wantAsked(t, "@@version", "UUID_TO_BIN", "SHOW")
	for _, mode := range []string{"NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"} {
		srv.rows = rows("8.4.6-Vitess", mode)
		s.Changed()
		if err := s.Know(t.Context(), srv, Moment{Settings: true}); err != nil || s.Unfit == "" || s.Text == nil {
			t.Errorf("%s: %v, %+v", mode, err, s.Capabilities)
		}
		srv.wantAsked(t, "SHOW")
	}
	for _, front := range []string{"8.4.6-vitess-like", "8.4.6-Proxy"} {
		srv = &answering{says: "9.7.4 ......", rows: rows(front, "")}
		s = New(MySQL, new(Database), new(Wants))
		if refusal := (*Refusal)(nil); !errors.As(s.Know(t.Context(), srv, Moment{}), &refusal) || refusal.Server == "" {
			t.Errorf("%s is accepted: %+v", front, s.Capabilities)
		}
	}
	srv = &answering{says: "9.7.4 ......", raises: errors.New("(errno 1411) (sqlstate HY000): Sql"), rows: rows("8.4.6-Vitess", "")}
	s = New(MySQL, new(Database), new(Wants))
	if err := s.Know(t.Context(), srv, Moment{}); err == nil {
		t.Error("a vttablet that hides the errors' texts is accepted")
	}
}

// Without a response the facts stay unknown, and the next write queries them again.
func TestWithoutAnAnswer(t *testing.T) {
	srv := &answering{says: `{"version": "` + fakedb.Version + `"}`, fails: errors.New("down")}
	s := New(Postgres, new(Database), &Wants{Ledger: true})
	for range 2 {
		if err := s.Know(t.Context(), srv, Moment{}); !errors.Is(err, srv.fails) {
			t.Error(err)
		}
	}
	srv.wantAsked(t, "pg_proc", "pg_proc")
	srv.fails = nil
	for range 2 {
		if err := s.Know(t.Context(), srv, Moment{}); err != nil {
			t.Error(err)
		}
	}
	srv.wantAsked(t, "pg_proc")
}

// If a driver quotes the statement in its errors, the session can't distinguish a refusal from another error, so Know
// fails.
func TestAnErrorThatQuotesTheStatementProvesNothing(t *testing.T) {
	for _, d := range []*Dialect{SQLite, Postgres, MySQL} {
		s := New(d, new(Database), new(Wants))
		if err := s.Know(t.Context(), quoting{answering{}}, Moment{}); err == nil {
			t.Errorf("%p: it is proven", d)
		}
		s = New(d, new(Database), new(Wants))
		if err := s.Know(t.Context(), &answering{says: map[*Dialect]string{Postgres: `{"version": "` + fakedb.Version + `"}`, MySQL: "8.4.0 ......"}[d]}, Moment{}); err != nil {
			t.Errorf("%p: %v", d, err)
		}
	}
}

type quoting struct{ answering }

func (s quoting) Query(context.Context, string) ([][]string, error) { return nil, nil }

func (s quoting) Exec(ctx context.Context, query string) error {
	s.says = map[bool]string{true: `{"version": "` + fakedb.Version + `"}`, false: "8.4.0 ......"}[strings.Contains(query, "pg_catalog")]
	if err := s.answering.Exec(ctx, query); err != nil {
		return fmt.Errorf("executing %s: %s", query, err)
	}
	return nil
}

// The pool caches the seals. A table with an unknown seal is queried.
func TestSealsAreAskedForTogether(t *testing.T) {
	books, pens := Name{"", `it's "x"`}, Name{"shop", "pens"}
	for d, want := range map[*Dialect][]string{
		Postgres: {`to_regclass('"it''s ""x"""')`, `to_regclass('"shop"."pens"')`},
		MySQL:    {"event_object_schema = DATABASE() AND event_object_table = _utf8mb4 X'6974277320227822'", "event_object_schema = _utf8mb4'shop' AND"},
	} {
		srv := &answering{says: map[*Dialect]string{Postgres: `{"version": "` + fakedb.Version + `", "sealed": [1]}`, MySQL: "8.4.0 ......"}[d],
			rows: map[string][][]string{"json_build_object": {{`{"sealed": [1]}`}}, "'sealed'": {{"sealed", "1"}}}}
		db, wants := new(Database), &Wants{Sealed: []Name{books, pens}}
		first, second := New(d, db, wants), New(d, db, wants)
		if err := first.Know(t.Context(), srv, Moment{InTx: true}); err != nil {
			t.Error(err)
		}
		srv.asked = slices.DeleteFunc(srv.asked, func(query string) bool { return !strings.Contains(query, "trigger") })
		for _, text := range want {
			if len(srv.asked) != 1 || !strings.Contains(srv.asked[0], text) {
				t.Errorf("%p: asked %q, want %s in it", d, srv.asked, text)
			}
		}
		if db.IsSealed(books) || !db.IsSealed(pens) {
			t.Errorf("%p: sealed %v and %v", d, db.IsSealed(books), db.IsSealed(pens))
		}
		srv.asked = nil
		if err := second.Know(t.Context(), srv, Moment{}); err != nil {
			t.Error(err)
		}
		srv.asked = slices.DeleteFunc(srv.asked, func(query string) bool { return !strings.Contains(query, "trigger") })
		srv.wantAsked(t)
		db.Seal(pens, false)
		db.Forget(Seals)
		if err := second.Know(t.Context(), srv, Moment{}); err != nil || !db.IsSealed(pens) {
			t.Errorf("%p: forgotten, and not asked again: %v", d, err)
		}
	}
}
