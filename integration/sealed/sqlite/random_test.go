package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
)

// shapes are tables whose rows REPLACE can delete in every way. a, b and c are what a
// statement writes.
var shapes = map[string]string{
	"plain":            "(id integer PRIMARY KEY, a, b UNIQUE, c, fence_token integer NOT NULL DEFAULT 0)",
	"no number":        "(id, a, b, c, fence_token integer NOT NULL DEFAULT 0, PRIMARY KEY (id, a), UNIQUE (b, c)) WITHOUT ROWID",
	"hidden number":    "(id, a UNIQUE, b, c, fence_token integer)",
	"composite":        "(id integer, a text COLLATE NOCASE, b text, c, fence_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (a, b DESC), UNIQUE (id, c))",
	"declared":         "(id integer PRIMARY KEY ON CONFLICT ROLLBACK, a UNIQUE ON CONFLICT ABORT, b UNIQUE ON CONFLICT IGNORE, c UNIQUE ON CONFLICT FAIL, fence_token integer NOT NULL ON CONFLICT REPLACE DEFAULT 0)",
	"defaults":         "(id integer PRIMARY KEY, a text NOT NULL DEFAULT 'x' UNIQUE, b integer NOT NULL DEFAULT (1 + 1) UNIQUE, c, fence_token integer NOT NULL DEFAULT 0)",
	"generated":        "(id integer PRIMARY KEY, a, b, c, d AS (a || b) UNIQUE, e AS (c * 2) STORED UNIQUE, fence_token integer NOT NULL DEFAULT 0)",
	"strict":           "(id integer PRIMARY KEY, a text UNIQUE, b any UNIQUE, c integer, fence_token integer NOT NULL DEFAULT 0) STRICT",
	"names of numbers": "(id integer PRIMARY KEY, rowid UNIQUE, oid, a UNIQUE, b, c, fence_token integer NOT NULL DEFAULT 0)",
	"part":             "(id integer PRIMARY KEY, a, b, c, fence_token integer NOT NULL DEFAULT 0);\nCREATE UNIQUE INDEX part ON books (a COLLATE NOCASE, b) WHERE c > 1;\nCREATE UNIQUE INDEX nocase ON books (c COLLATE NOCASE)",
	"changing part":    "(id integer PRIMARY KEY, a, b, c, fence_token integer NOT NULL DEFAULT 0);\nCREATE UNIQUE INDEX part ON books (a) WHERE c = 1;\nCREATE UNIQUE INDEX numbers ON books (b) WHERE rowid > 2",
	"written again":    "(id integer PRIMARY KEY, a, b UNIQUE, c, fence_token integer NOT NULL DEFAULT 0);\nCREATE TRIGGER added AFTER INSERT ON books BEGIN UPDATE books SET b = NEW.a WHERE id = NEW.id; END;\nCREATE TRIGGER changed AFTER UPDATE OF a, c ON books BEGIN UPDATE books SET b = NEW.a WHERE id = NEW.id; UPDATE books SET b = NEW.c WHERE id = NEW.id; END",
	"passed on":        "(id integer PRIMARY KEY, a, b UNIQUE, c, fence_token integer NOT NULL DEFAULT 0);\nCREATE TRIGGER gone AFTER DELETE ON books BEGIN UPDATE books SET b = OLD.a, fence_token = OLD.fence_token % 1000000000000000 WHERE id = OLD.id + 1; END;\nCREATE TRIGGER first BEFORE UPDATE OF c ON books BEGIN UPDATE books SET b = NEW.c, fence_token = -abs(NEW.fence_token) WHERE id = NEW.id - 1; END",
	"no number again":  "(id, a, b UNIQUE, c, fence_token integer NOT NULL DEFAULT 0, PRIMARY KEY (id, a)) WITHOUT ROWID;\nCREATE TRIGGER added AFTER INSERT ON books BEGIN UPDATE books SET a = NEW.b WHERE id = NEW.id AND a = NEW.a; END;\nCREATE TRIGGER changed AFTER UPDATE OF c ON books BEGIN UPDATE books SET b = NEW.c WHERE id = NEW.id AND a = NEW.a; UPDATE books SET id = NEW.c WHERE id = NEW.id AND a = NEW.a; END",
	"affinities":       "(id integer PRIMARY KEY, a text UNIQUE, b numeric UNIQUE, c real UNIQUE, fence_token integer NOT NULL DEFAULT 0)",
	"numbered again":   "(id integer PRIMARY KEY AUTOINCREMENT, a UNIQUE, b, c, fence_token integer NOT NULL DEFAULT 0)",
}

// Whatever the bare driver sends, no row changes, comes or goes unless the statement carries a
// negative mark that the row's own takes. None stays negative but by OR FAIL, where a trigger fails;
// it counts by its size then.
func TestRandomStatements(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		for name, shape := range shapes {
			t.Run(name, func(t *testing.T) {
				seed := harness.Seed(t)
				r := rand.New(rand.NewPCG(seed, 1))
				for round := range 2 {
					l := newLab(t, b, "CREATE TABLE books "+shape+";\nINSERT INTO books (id, a, b, c) VALUES (1, 'x', 2, 1), (2, 'y', 3, 2)")
					l.exec(t, fmt.Sprintf("PRAGMA recursive_triggers = %d", round))
					landed := 0
					for n := range harness.Rounds(t, 300) {
						s := randomStatement(r, int64(n/20))
						if strings.Contains(shape, "TRIGGER") {
							l.later(t)
						}
						landed += l.attack(t, s, seed)
					}
					if landed < 10 {
						t.Errorf("only %d statements have changed something", landed)
					}
				}
			})
		}
	})
}

// attack sends a statement and compares the rows before and behind it. It returns 1 if some are
// others now.
func (l *lab) attack(t *testing.T, s statement, seed uint64) int {
	t.Helper()
	before := l.marks(t)
	_, err := l.bare.ExecContext(t.Context(), s.text)
	left := l.marksBelow(t)
	if left > l.left && (err == nil || !strings.Contains(s.text, " OR FAIL")) {
		t.Fatalf("seed %d: %s leaves a negative mark (%v)", seed, s.text, err)
	}
	l.left = left
	after := l.marks(t)
	changed := 0
	for row, mark := range before {
		if _, there := after[row]; !there {
			changed = 1
			if mark > s.token {
				t.Fatalf("seed %d: %s changes or deletes %q (%v)", seed, s.text, row, err)
			}
		}
	}
	for row, mark := range after {
		if _, there := before[row]; !there {
			changed = 1
			if mark != s.token {
				t.Fatalf("seed %d: %s stores %q, want the mark %d (%v)", seed, s.text, row, s.token, err)
			}
		}
	}
	return changed
}

// marksBelow returns how many marks are negative.
func (l *lab) marksBelow(t *testing.T) int {
	t.Helper()
	return len(rows(t, l.bare, "SELECT 1 FROM books WHERE fence_token < 0"))
}

// marks returns the rows of books with the sizes of their marks. A row whose sign changes is another one.
func (l *lab) marks(t *testing.T) map[string]int64 {
	t.Helper()
	marks := make(map[string]int64)
	for _, row := range rows(t, l.bare, "SELECT max(COALESCE(fence_token, 0), COALESCE(-fence_token % 1000000000000000, 0)), * FROM books") {
		mark, _, _ := strings.Cut(row, " ")
		n, err := strconv.ParseInt(mark, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		marks[row] = n
	}
	return marks
}

// A statement carries this token, or 0 for none.
type statement struct {
	text  string
	token int64
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomStatement returns one that carries no token, or one of the five above a number: some are
// stale.
func randomStatement(r *rand.Rand, above int64) statement {
	s := statement{}
	mark := s.mark(r, above)
	or := pick(r, "", "", " OR REPLACE", " OR IGNORE", " OR FAIL", " OR ABORT", " OR ROLLBACK")
	switch r.IntN(8) {
	case 0:
		return statement{text: "DELETE FROM books" + where(r)}
	case 1, 2, 3:
		s.text = "UPDATE" + or + " books SET " + sets(r)
		if mark != "" {
			s.text += ", fence_token = " + mark
		}
		s.text += where(r)
	default:
		verb := "INSERT" + or
		if r.IntN(5) == 0 {
			verb = "REPLACE"
		}
		columns, values := "id, a, b, c", func() string {
			v := value(r) + ", " + value(r) + ", " + value(r) + ", " + value(r)
			if mark != "" {
				v += ", " + mark
			}
			return "(" + v + ")"
		}
		if mark != "" {
			columns += ", fence_token"
		}
		s.text = verb + " INTO books (" + columns + ") VALUES " + values()
		if r.IntN(3) == 0 {
			s.text += ", " + values()
		}
		switch r.IntN(6) {
		case 0:
			s.text += " ON CONFLICT DO NOTHING"
		case 1, 2:
			s.text += " ON CONFLICT DO UPDATE SET " + sets(r)
			if mark != "" {
				s.text += ", fence_token = " + mark
			}
		}
	}
	return s
}

// mark returns what a statement writes to the fence column; empty for nothing.
func (s *statement) mark(r *rand.Rand, above int64) string {
	token := above + 1 + r.Int64N(5)
	switch r.IntN(16) {
	case 0:
		return ""
	case 1:
		return "NULL"
	case 2:
		return "0"
	case 3:
		return strconv.FormatInt(token, 10)
	case 4:
		return pick(r, "'x'", "-0.5", "x'2d31'", "-1000000000000000", "-900000000000001", "-9223372036854775808", "-2000000000000001", "9223372036854775807", "-1e300")
	case 5, 6:
		s.token = token
		return strconv.FormatInt(-1_000_000_000_000_000-token, 10)
	case 7:
		s.token = token
		return fmt.Sprintf("'-%d'", token)
	}
	s.token = token
	return strconv.FormatInt(-token, 10)
}

func value(r *rand.Rand) string {
	return pick(r, "1", "2", "3", "4", "'1'", "'a'", "'A'", "'x'", "2.0", "NULL", "-1")
}

func sets(r *rand.Rand) string {
	column := pick(r, "a", "b", "c", "id", "_rowid_")
	if r.IntN(3) == 0 {
		return "a = " + value(r) + ", c = " + value(r)
	}
	return column + " = " + value(r)
}

func where(r *rand.Rand) string {
	return pick(r, "", " WHERE id = "+value(r), " WHERE a = "+value(r), " WHERE c IS NULL", " WHERE fence_token < 3", " WHERE b > "+value(r))
}
