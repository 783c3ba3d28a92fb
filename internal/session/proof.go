package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A guard is worth what its raise is worth: a server that folds the expression, or gives a value
// where it should fail, applies every stale write. So each connection has to fail a statement with
// the same expression first, and with the code and the text of a raise. Its dialect says which server it
// should be; the proof says what it does.

// A Refusal is why nothing that is guarded is written on a server.
type Refusal struct {
	Server  string // its name, if guards aren't known to hold on it
	Version string // what it says of itself; empty if it says nothing

	Unproven bool  // it didn't raise what a guard raises
	Err      error // what it answered instead; nil if it raised nothing
}

func (r *Refusal) Error() string {
	switch {
	case r.Unproven && r.Err != nil:
		return fmt.Sprintf("the server %q doesn't throw the error of a guard, so that a stale write could pass: %v",
			r.Version, r.Err)
	case r.Unproven:
		return fmt.Sprintf("the server %q doesn't throw the error of a guard, so that a stale write could pass",
			r.Version)
	}
	return fmt.Sprintf("the server is %s (%q), and guards weren't tested with its locks and isolation",
		r.Server, r.Version)
}

// Unwrap returns what the server answered instead.
func (r *Refusal) Unwrap() error { return r.Err }

// mark begins what is raised. Its halves stand apart in the statement, so that an error which
// quotes the statement isn't taken for one that it has raised.
var mark = sqltext.NewMark("server")

// Raising is an expression that raises the mark, with a detail behind it.
func Raising(d sqltext.Dialect, detail string) string {
	half := len(mark) / 2
	return sqltext.Raise(d, d.Text(mark[:half]), d.Text(mark[half:]), detail)
}

// IsCanary reports whether a statement is one that has to raise.
func IsCanary(query string) bool { return strings.Contains(query, mark[len(mark)/2:]) }

// prove has the server raise, and reads what that says.
func (s *Session) prove(ctx context.Context, c Conn, m Moment, w *Wanted) error {
	raised, err := s.raise(ctx, c, m, w)
	if err != nil {
		return unanswered(ctx, err)
	}
	if detail, ok := proves(s.dialect, raised); ok {
		w.Proven = true
		return s.dialect.ReadProof(w, detail)
	}
	if raised != nil && !isAnswer(ctx, raised) {
		return raised
	}
	version, err := s.version(ctx, c, m)
	if err != nil && raised != nil && (!isAnswer(ctx, err) || isSame(err, raised)) {
		return raised // it is about any statement, as on a standby in serializable mode
	}
	return &Refusal{Unproven: true, Err: raised, Version: version}
}

// raise has the server raise. Where that would end a transaction, one may be open that isn't known of, and one
// that is believed to be open may have ended.
func (s *Session) raise(ctx context.Context, c Conn, m Moment, w *Wanted) (raised, err error) {
	ends := s.dialect.ErrorEndsTx.Is()
	inTx := func() (open bool, err error) {
		return behindSavepoint(ctx, c, func() { raised = c.Exec(ctx, s.dialect.Canary(w, true)) })
	}
	if m.InTx && ends {
		if open, err := inTx(); open || err != nil {
			return raised, err
		}
	}
	if raised = c.Exec(ctx, s.dialect.Canary(w, false)); raised == nil && ends {
		_, err = inTx()
	}
	return raised, err
}

// version asks the server what it says of itself.
func (s *Session) version(ctx context.Context, c Conn, m Moment) (version string, err error) {
	var rows [][]string
	ask := func() { rows, err = c.Query(ctx, s.dialect.Version) }
	open := false
	if m.InTx && s.dialect.ErrorEndsTx.Is() {
		var lost error
		if open, lost = behindSavepoint(ctx, c, ask); lost != nil {
			return "", lost // nothing more can be asked
		}
	}
	if !open {
		ask()
	}
	if err == nil && len(rows) > 0 {
		version = strings.TrimSpace(strings.Join(rows[0], " "))
	}
	return version, err
}

// behindSavepoint does what may fail so that a transaction lives on, if one is open.
func behindSavepoint(ctx context.Context, c Conn, do func()) (open bool, err error) {
	switch err := c.Exec(ctx, "SAVEPOINT sqlfence_server"); {
	case dberr.SQLState(err) == dberr.NoActiveTransaction:
		return false, nil
	case err != nil:
		return false, err
	}
	do()
	for _, end := range []string{"ROLLBACK TO SAVEPOINT sqlfence_server", "RELEASE SAVEPOINT sqlfence_server"} {
		if err := c.Exec(ctx, end); err != nil {
			return true, err
		}
	}
	return true, nil
}

// proves reports whether err is what [Raising] raises, and returns the text behind the mark. An error that quotes the
// statement beside it proves nothing: every other error of a guarded statement would quote the guard's mark.
func proves(d *Dialect, err error) (detail string, ok bool) {
	if err == nil {
		return "", false
	}
	text, ok := d.Text.Raised(err)
	_, detail, found := strings.Cut(text, mark)
	quotes := strings.Count(text, mark[len(mark)/2:]) > 1
	return detail, ok && found && !quotes
}

// isAnswer reports whether an error that proves nothing is the server's answer, rather than about what is going on
// around it.
func isAnswer(ctx context.Context, err error) bool {
	return (dberr.SQLState(err) != "" || isResult(err)) && ctx.Err() == nil && !dberr.IsPassing(err) &&
		!dberr.IsSessionEnd(err) && dberr.SQLState(err) != dberr.InFailedTransaction
}

// isResult reports whether an error is a result of SQLite's, and not that another connection has the file.
func isResult(err error) bool {
	_, ok := dberr.SQLiteCode(err)
	return ok && !dberr.IsBusy(err)
}

// isSame reports whether the server has answered two statements with the same error. One that has no version answers
// each with what is wrong in it.
func isSame(a, b error) bool { return dberr.SQLState(a) == dberr.SQLState(b) && a.Error() == b.Error() }

// ErrNoFacts is the error of a ReadProof.
var ErrNoFacts = errors.New("sqlfence: the server's answer can't be read")
