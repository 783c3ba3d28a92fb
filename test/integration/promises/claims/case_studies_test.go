package claims_test

import (
	"context"
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The case studies are how known programs try to let only the holder of a job or a lock write, reduced to their
// statements. By hand the late write of a replaced worker succeeds. With sqlfence it is refused.

// A study is one such program. Both forms return the late write's error.
type study struct {
	name           string
	byHand, fenced func(ctx context.Context, s stage) error
	landed         string // the note of a late write that lands
	postgres       bool   // only on PostgreSQL does the late write by hand land
}

var studies = []study{
	{name: "CompletionByIDAndState", byHand: idAndStateByHand, fenced: idAndStateFenced, landed: "late"},
	{name: "CompletionByID", byHand: idByHand, fenced: idFenced, landed: "late"},
	{name: "LockedBy", byHand: lockedByHand, fenced: lockedByFenced, landed: "late"},
	{name: "SelectThenWrite", byHand: selectByHand, fenced: selectFenced, landed: "late"},
	{name: "ExistsThenWrite", byHand: existsByHand, fenced: existsFenced, landed: "late", postgres: true},
}

// A stage is the database of a study: the table jobs with job 1, and the table entries for further writes.
type stage struct {
	open func(opts ...sqlfence.Option) *sql.DB
	exec func(ctx context.Context, db execer, query string, args ...any) // fails the test on an error
	read func(ctx context.Context, db queryer, query string, args ...any) int64
	// during runs the late write while the takeover is executed and uncommitted, and then commits the takeover.
	during func(takeover *sql.Tx, late func() error) error
}

// River completes a job by its id and state. If the job was rescued and taken again, its state is running again.
func idAndStateByHand(ctx context.Context, s stage) error {
	db := s.open()
	const take = "UPDATE jobs SET state = 'running', attempt = attempt + 1 WHERE id = $1 AND state = 'available'"
	s.exec(ctx, db, take, 1)
	s.exec(ctx, db, "UPDATE jobs SET state = 'available' WHERE id = $1 AND state = 'running'", 1)
	s.exec(ctx, db, take, 1)
	_, err := db.ExecContext(ctx, "UPDATE jobs SET state = 'completed', note = 'late' WHERE id = $1 AND state = 'running'", 1)
	return err
}

func idAndStateFenced(ctx context.Context, s stage) error {
	db := s.open(sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
	const take = "UPDATE jobs SET state = 'running', attempt = attempt + 1 WHERE id = $1 AND state = 'available'"
	s.exec(ctx, db, take, 1)
	claim, _ := sqlfence.ClaimToken("jobs", 1, s.read(ctx, db, "SELECT attempt FROM jobs WHERE id = $1", 1))
	s.exec(sqlfence.WithTakeover(ctx), db, "UPDATE jobs SET state = 'available' WHERE id = $1 AND state = 'running'", 1)
	s.exec(ctx, db, take, 1)
	ctx = sqlfence.WithFence(ctx, claim)
	_, err := db.ExecContext(ctx, "UPDATE jobs SET state = 'completed', note = 'late' WHERE id = $1 AND state = 'running'", 1)
	return err
}

// Coder completes a job by its id, whichever worker has the job at that time.
func idByHand(ctx context.Context, s stage) error {
	db := s.open()
	const take = "UPDATE jobs SET state = 'running', worker = $1 WHERE id = 1"
	s.exec(ctx, db, take, "a")
	s.exec(ctx, db, take, "b")
	_, err := db.ExecContext(ctx, "UPDATE jobs SET state = 'completed', note = 'late' WHERE id = $1", 1)
	return err
}

func idFenced(ctx context.Context, s stage) error {
	db := s.open(sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
	const take = "UPDATE jobs SET state = 'running', worker = $1, attempt = attempt + 1 WHERE id = 1"
	s.exec(ctx, db, take, "a")
	claim, _ := sqlfence.ClaimToken("jobs", 1, s.read(ctx, db, "SELECT attempt FROM jobs WHERE id = $1", 1))
	s.exec(ctx, db, take, "b")
	ctx = sqlfence.WithFence(ctx, claim)
	_, err := db.ExecContext(ctx, "UPDATE jobs SET state = 'completed', note = 'late' WHERE id = $1", 1)
	return err
}

// A claim by the holder's name alone also matches the same holder's next claim.
func lockedByHand(ctx context.Context, s stage) error {
	db := s.open()
	const take = "UPDATE jobs SET state = 'running', worker = $1 WHERE id = 1 AND worker IS NULL"
	s.exec(ctx, db, take, "host-7")
	s.exec(ctx, db, "UPDATE jobs SET worker = NULL WHERE id = 1")
	s.exec(ctx, db, take, "host-7")
	_, err := db.ExecContext(ctx, "UPDATE jobs SET state = 'done', note = 'late' WHERE id = 1 AND worker = $1", "host-7")
	return err
}

func lockedByFenced(ctx context.Context, s stage) error {
	db := s.open(sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")))
	const take = "UPDATE jobs SET state = 'running', worker = $1, attempt = attempt + 1 WHERE id = 1 AND worker IS NULL"
	s.exec(ctx, db, take, "host-7")
	claim, _ := sqlfence.ClaimToken("jobs", 1, s.read(ctx, db, "SELECT attempt FROM jobs WHERE id = $1", 1))
	s.exec(sqlfence.WithTakeover(ctx), db, "UPDATE jobs SET worker = NULL WHERE id = 1")
	s.exec(ctx, db, take, "host-7")
	ctx = sqlfence.WithFence(ctx, claim)
	_, err := db.ExecContext(ctx, "UPDATE jobs SET state = 'done', note = 'late' WHERE id = 1 AND worker = $1", "host-7")
	return err
}

// OpenBao's active node checks that the lock is still held, and then writes. A pause may occur between check and write.
func selectByHand(ctx context.Context, s stage) error {
	db := s.open()
	s.exec(ctx, db, "UPDATE jobs SET worker = $1 WHERE id = 1", "a")
	if s.read(ctx, db, "SELECT count(*) FROM jobs WHERE id = 1 AND worker = $1", "a") == 0 {
		return errors.New("the lock is another one's")
	}
	s.exec(ctx, db, "UPDATE jobs SET worker = $1 WHERE id = 1", "b")
	_, err := db.ExecContext(ctx, "UPDATE entries SET note = 'late' WHERE id = $1", 1)
	return err
}

func selectFenced(ctx context.Context, s stage) error {
	db := s.open(sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")),
		sqlfence.WithTable("entries", sqlfence.ClaimOf("jobs")))
	s.exec(ctx, db, "UPDATE jobs SET worker = $1, attempt = attempt + 1 WHERE id = 1", "a")
	claim, _ := sqlfence.ClaimToken("jobs", 1, s.read(ctx, db, "SELECT attempt FROM jobs WHERE id = $1", 1))
	if s.read(ctx, db, "SELECT count(*) FROM jobs WHERE id = 1 AND worker = $1", "a") == 0 {
		return errors.New("the lock is another one's")
	}
	s.exec(ctx, db, "UPDATE jobs SET worker = $1, attempt = attempt + 1 WHERE id = 1", "b")
	ctx = sqlfence.WithFence(ctx, claim)
	_, err := db.ExecContext(ctx, "UPDATE entries SET note = 'late' WHERE id = $1", 1)
	return err
}

// The subquery of the write sees the rows that were committed before the statement. It neither sees nor blocks an
// uncommitted takeover.
func existsByHand(ctx context.Context, s stage) error {
	db := s.open()
	s.exec(ctx, db, "UPDATE jobs SET worker = 'a', attempt = 1 WHERE id = 1")
	takeover, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	s.exec(ctx, takeover, "UPDATE jobs SET worker = 'b', attempt = 2 WHERE id = 1")
	return s.during(takeover, func() error {
		_, err := db.ExecContext(ctx, "UPDATE entries SET note = 'late' WHERE id = 1 AND EXISTS (SELECT 1 FROM jobs WHERE id = 1 AND attempt = $1)", 1)
		return err
	})
}

func existsFenced(ctx context.Context, s stage) error {
	db := s.open(sqlfence.WithTable("jobs", sqlfence.Key("id"), sqlfence.Claim("attempt")),
		sqlfence.WithTable("entries", sqlfence.ClaimOf("jobs")))
	s.exec(ctx, db, "UPDATE jobs SET worker = 'a', attempt = 1 WHERE id = 1")
	claim, _ := sqlfence.ClaimToken("jobs", 1, 1)
	takeover, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	s.exec(ctx, takeover, "UPDATE jobs SET worker = 'b', attempt = 2 WHERE id = 1")
	ctx = sqlfence.WithFence(ctx, claim)
	return s.during(takeover, func() error {
		_, err := db.ExecContext(ctx, "UPDATE entries SET note = 'late' WHERE id = 1 AND EXISTS (SELECT 1 FROM jobs WHERE id = 1 AND attempt = $1)", 1)
		return err
	})
}

// Each study's late write succeeds by hand, and is refused with sqlfence.
func TestCaseStudies(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for _, study := range studies {
			if study.postgres && b.Dialect != sqlfence.Postgres {
				continue
			}
			for _, fenced := range []bool{false, true} {
				form, want, left := study.byHand, error(nil), study.landed
				if fenced {
					form, want, left = study.fenced, sqlfence.ErrStale, "none"
				}
				s, notes := newStage(t, b)
				if err := form(t.Context(), s); !errors.Is(err, want) || want == nil && err != nil {
					t.Errorf("%s, fenced %v: %v, want %v", study.name, fenced, err, want)
				}
				if got := notes(); got != left {
					t.Errorf("%s, fenced %v: the note is %s, want %s", study.name, fenced, got, left)
				}
			}
		}
	})
}

// newStage returns a stage, and a function that returns the written note.
func newStage(t *testing.T, b harness.Base) (s stage, notes func() string) {
	t.Helper()
	dsn := b.DSN(t)
	plain := b.Raw(t, dsn)
	for _, query := range []string{
		"CREATE TABLE jobs (id bigint PRIMARY KEY, state varchar(20), worker varchar(20), attempt bigint NOT NULL DEFAULT 0, note varchar(20))",
		"CREATE TABLE entries (id bigint PRIMARY KEY, note varchar(20))",
		"INSERT INTO jobs (id, state) VALUES (1, 'available')", "INSERT INTO entries (id) VALUES (1)",
	} {
		if _, err := plain.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	s.open = func(opts ...sqlfence.Option) *sql.DB {
		if len(opts) == 0 {
			return plain
		}
		return b.Fenced(t, dsn, opts...)
	}
	s.exec = func(ctx context.Context, db execer, query string, args ...any) {
		if _, err := db.ExecContext(ctx, query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	s.read = func(ctx context.Context, db queryer, query string, args ...any) (n int64) {
		if err := db.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	s.during = func(takeover *sql.Tx, late func() error) error {
		waiting := harness.Go(late)
		harness.Eventually(t, "the late write has ended, or waits for the takeover", func() bool {
			select {
			case <-waiting.Ended():
				return true
			default:
				return b.Waiting(t, plain) > 0
			}
		})
		if err := takeover.Commit(); err != nil {
			t.Fatal(err)
		}
		return waiting.Wait()
	}
	return s, func() (note string) {
		const query = "SELECT COALESCE(MAX(n), 'none') FROM (SELECT note AS n FROM jobs UNION ALL SELECT note FROM entries) AS notes"
		if err := plain.QueryRowContext(t.Context(), query).Scan(&note); err != nil {
			t.Fatal(err)
		}
		return note
	}
}

// With sqlfence at most ten lines of a study differ from the study by hand.
func TestCaseStudiesChangeFewLines(t *testing.T) {
	const most = 10
	text, err := os.ReadFile("case_studies_test.go")
	if err != nil {
		t.Fatal(err)
	}
	source := string(text)
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "case_studies_test.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			body := source[set.Position(f.Body.Lbrace).Offset:set.Position(f.Body.Rbrace).Offset]
			lines[f.Name.Name] = strings.Split(body, "\n")
		}
	}
	compared := 0
	for name, fenced := range lines {
		study, ok := strings.CutSuffix(name, "Fenced")
		byHand := lines[strings.TrimSuffix(study, "By")+"ByHand"]
		if !ok || byHand == nil {
			continue
		}
		compared++
		there := map[string]int{}
		for _, line := range byHand {
			there[line]++
		}
		changed := 0
		for _, line := range fenced {
			if there[line]--; there[line] < 0 {
				changed++
			}
		}
		t.Logf("%s: %d lines", study, changed)
		if changed > most {
			t.Errorf("%s changes %d lines, at most %d", study, changed, most)
		}
	}
	if compared != len(studies) {
		t.Errorf("compared %d of %d", compared, len(studies))
	}
}
