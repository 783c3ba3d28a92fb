package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A guard depends on its error: a server that folds the expression, or returns a value instead of failing, applies
// every stale write. So each connection must first fail a statement with the same expression, and with the code and the
// text of a guard's error. The dialect names the expected server; the probe verifies how the server behaves.

// A Refusal is why guarded writes are refused on a server.
type Refusal struct {
	Server  string // its name, if guards aren't known to hold there
	Version string // its version string; empty if unknown

	Unproven bool  // it didn't throw a guard's error
	Err      error // the error that it returned instead; nil for none
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

// Unwrap returns the error that the server returned instead.
func (r *Refusal) Unwrap() error { return r.Err }

// mark begins the thrown error's text. The statement contains the halves of mark separately, so that an error that
// quotes the statement isn't taken for the thrown error.
var mark = sqltext.NewMark("server")

// Raising returns an expression that throws an error with the mark followed by detail.
func Raising(d sqltext.Dialect, detail string) string {
	half := len(mark) / 2
	return sqltext.Raise(d, d.Text(mark[:half]), d.Text(mark[half:]), detail)
}

// IsCanary reports whether a statement is a canary, which must throw an error.
func IsCanary(query string) bool { return strings.Contains(query, mark[len(mark)/2:]) }

// prove makes the server throw a guard's error, and reads the facts in it.
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
		return raised // each statement fails with it, as on a standby in serializable mode
	}
	return &Refusal{Unproven: true, Err: raised, Version: version}
}

// raise makes the server throw the canary's error. If the error would end a transaction, raise considers that an
// unknown transaction may be open, and that a known one may have ended.
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

// version queries the server's version string.
func (s *Session) version(ctx context.Context, c Conn, m Moment) (version string, err error) {
	var rows [][]string
	ask := func() { rows, err = c.Query(ctx, s.dialect.Version) }
	open := false
	if m.InTx && s.dialect.ErrorEndsTx.Is() {
		var lost error
		if open, lost = behindSavepoint(ctx, c, ask); lost != nil {
			return "", lost // no further query can be sent
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

// behindSavepoint calls do after a savepoint if a transaction is open, so that an error in do doesn't end it.
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

// proves reports whether err is the error of [Raising], and returns the text after the mark. An error that also quotes
// the statement proves nothing: any other error of a guarded statement would then quote the guard's mark.
func proves(d *Dialect, err error) (detail string, ok bool) {
	if err == nil {
		return "", false
	}
	text, ok := d.Text.Raised(err)
	_, detail, found := strings.Cut(text, mark)
	quotes := strings.Count(text, mark[len(mark)/2:]) > 1
	return detail, ok && found && !quotes
}

// isAnswer reports whether an error that proves nothing is the server's response to the statement, rather than caused
// by the context, the connection or the transaction.
func isAnswer(ctx context.Context, err error) bool {
	return (dberr.SQLState(err) != "" || isResult(err)) && ctx.Err() == nil && !dberr.IsPassing(err) &&
		!dberr.IsSessionEnd(err) && dberr.SQLState(err) != dberr.InFailedTransaction
}

// isResult reports whether an error is a result code of SQLite other than a busy file.
func isResult(err error) bool {
	_, ok := dberr.SQLiteCode(err)
	return ok && !dberr.IsBusy(err)
}

// isSame reports whether two statements failed with the same error. A server without the version query returns a
// different error for each statement.
func isSame(a, b error) bool { return dberr.SQLState(a) == dberr.SQLState(b) && a.Error() == b.Error() }

// ErrNoFacts is the error of a ReadProof that can't read the facts.
var ErrNoFacts = errors.New("sqlfence: the server's answer can't be read")
