package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// A guard depends on the error that it throws: a server that folds the expression, or returns a value instead of
// failing, applies every stale write. So before the first guarded write on a connection, the server must fail a
// statement with the same expression, the canary, with the code and the text of a guard's error. The dialect names the
// expected server; the canary verifies how the server behaves.

// A Refusal is the error of guarded writes on a server on which guards don't hold, or aren't known to hold.
type Refusal struct {
	Server  string // the server's name, if guards aren't known to hold there
	Version string // the server's version string; empty if unknown

	Unproven bool   // the server didn't throw the canary's error
	Hides    string // what may have hidden the error's text; empty if unknown
	Err      error  // the error that the server returned instead; nil if the canary succeeded
}

func (r *Refusal) Error() string {
	switch {
	case r.Unproven && r.Hides != "":
		return fmt.Sprintf("the server %q doesn't throw the error of a guard with its text (%s): %v", r.Version,
			r.Hides, r.Err)
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

// canaryMarker begins the text of the canary's error. The canary contains the two halves of canaryMarker separately, so
// that an error that quotes the statement isn't taken for the canary's error.
var canaryMarker = sqltext.NewMarker("server")

// Throwing returns an SQL expression that throws an error. The error's text is canaryMarker, followed by the value of
// the expression detail.
func Throwing(d sqltext.Dialect, detail string) string {
	half := len(canaryMarker) / 2
	return sqltext.Throw(d, d.Text(canaryMarker[:half]), d.Text(canaryMarker[half:]), detail)
}

// IsCanary reports whether a statement is a canary of this package.
func IsCanary(query string) bool { return strings.Contains(query, canaryMarker[len(canaryMarker)/2:]) }

// probe sends the canary, and reads the facts from the error that the server throws. If the server doesn't throw this
// error, probe returns a [*Refusal].
func (s *Session) probe(ctx context.Context, c Conn, m Moment, w *Wanted) error {
	raised, err := s.sendCanary(ctx, c, m, w)
	if err != nil {
		return queryError(ctx, err)
	}
	if detail, ok := probeDetail(s.dialect, raised); ok {
		w.Probed = true
		return s.dialect.ReadProbe(w, detail)
	}
	if raised != nil && !isResponse(ctx, raised) {
		return raised
	}
	version, err := s.version(ctx, c, m)
	if err != nil && raised != nil && (!isResponse(ctx, err) || isSame(err, raised)) {
		return raised // each statement fails with it, as on a standby in serializable mode
	}
	return &Refusal{Unproven: true, Hides: w.Capabilities.Hides, Err: raised, Version: version}
}

// sendCanary sends the canary and returns the server's error for it as raised. If the error would end a transaction,
// sendCanary sends the canary in a savepoint if a transaction is open. m.InTx may be wrong, because statements may have
// begun or ended a transaction unnoticed: then the SAVEPOINT, or the canary, shows this.
func (s *Session) sendCanary(ctx context.Context, c Conn, m Moment, w *Wanted) (raised, err error) {
	ends := s.dialect.ErrorEndsTx.Is()
	inTx := func() (open bool, err error) {
		return withinSavepoint(ctx, c, func() { raised = c.Exec(ctx, s.dialect.Canary(w, true)) })
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
		if open, lost = withinSavepoint(ctx, c, ask); lost != nil {
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

// withinSavepoint sets a savepoint, calls do, and rolls back to the savepoint, if a transaction is open: so an error in
// do doesn't end the transaction. open reports whether a transaction was open; otherwise do wasn't called.
func withinSavepoint(ctx context.Context, c Conn, do func()) (open bool, err error) {
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

// probeDetail reports whether err is the error of [Throwing], and returns the text after the marker. An error that
// quotes the statement doesn't count: on such a server any error of a guarded statement would look like the guard's.
func probeDetail(d *Dialect, err error) (detail string, ok bool) {
	if err == nil {
		return "", false
	}
	text, ok := d.Text.Thrown(err)
	_, detail, found := strings.Cut(text, canaryMarker)
	quotes := strings.Count(text, canaryMarker[len(canaryMarker)/2:]) > 1
	return detail, ok && found && !quotes
}

// isResponse reports whether an error other than the canary's is the server's response to the statement, rather than
// caused by the context, the connection or the transaction.
func isResponse(ctx context.Context, err error) bool {
	return (dberr.SQLState(err) != "" || isResult(err)) && ctx.Err() == nil && !dberr.IsPassing(err) &&
		!dberr.IsSessionEnd(err) && dberr.SQLState(err) != dberr.InFailedTransaction
}

// isResult reports whether an error is a result code of SQLite other than a busy file.
func isResult(err error) bool {
	_, ok := dberr.SQLiteCode(err)
	return ok && !dberr.IsBusy(err)
}

// isSame reports whether two statements, the canary and the version query, failed with the same error: then the server
// fails every statement.
func isSame(a, b error) bool { return dberr.SQLState(a) == dberr.SQLState(b) && a.Error() == b.Error() }

// ErrUnreadable is the error of [Dialect].ReadProbe if it can't read the facts.
var ErrUnreadable = errors.New("sqlfence: the server's answer can't be read")
