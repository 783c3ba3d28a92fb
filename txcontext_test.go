package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/fakedb"
)

// Every way in which database/sql runs a statement in a transaction, without a context
// and with the statement's own.
var txWays = map[string]func(ctx context.Context, tx *sql.Tx, query string) error{
	"Exec":        func(_ context.Context, tx *sql.Tx, q string) error { _, err := tx.Exec(q); return err },
	"ExecContext": func(ctx context.Context, tx *sql.Tx, q string) error { _, err := tx.ExecContext(ctx, q); return err },
	"Query": func(_ context.Context, tx *sql.Tx, q string) error {
		rows, err := tx.Query(q)
		if err == nil {
			err = rows.Close()
		}
		return err
	},
	"Prepare": func(_ context.Context, tx *sql.Tx, q string) error {
		stmt, err := tx.Prepare(q)
		if err != nil {
			return err
		}
		_, err = stmt.Exec()
		return errors.Join(err, stmt.Close())
	},
	"Prepare, ExecContext": func(ctx context.Context, tx *sql.Tx, q string) error {
		stmt, err := tx.PrepareContext(ctx, q)
		if err != nil {
			return err
		}
		_, err = stmt.ExecContext(ctx)
		return errors.Join(err, stmt.Close())
	},
}

func TestTransactionHasTheTokensOfItsContext(t *testing.T) {
	const query = "UPDATE books SET price = 1"
	for way, run := range txWays {
		t.Run(way, func(t *testing.T) {
			base := &fakedb.Recorder{}
			db := open(t, base, sqlfence.WithTable("books", fenced))
			db.SetMaxOpenConns(1)
			tx, err := db.BeginTx(sqlfence.WithFence(t.Context(), token("books", 7)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := run(t.Context(), tx, query); err != nil {
				t.Errorf("with the transaction's token: %v", err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			// The next one on the connection knows nothing of it, however the first ended.
			for range 2 {
				if tx, err = db.BeginTx(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if err := run(t.Context(), tx, query); !errors.Is(err, sqlfence.ErrNoFence) {
					t.Errorf("in a transaction without a token: %v, want ErrNoFence", err)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				if tx, err = db.BeginTx(sqlfence.WithFence(t.Context(), token("books", 7)), nil); err == nil {
					err = tx.Rollback()
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := db.Exec(query); !errors.Is(err, sqlfence.ErrNoFence) {
					t.Errorf("after the transaction: %v, want ErrNoFence", err)
				}
			}
		})
	}
}

func TestStatementOfADatabaseRunInATransaction(t *testing.T) {
	base := &fakedb.Recorder{}
	db := open(t, base, sqlfence.WithTable("books", fenced))
	stmt, err := db.Prepare("UPDATE books SET price = 1")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	tx, err := db.BeginTx(sqlfence.WithFence(t.Context(), token("books", 7)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Stmt(stmt).Exec(); err != nil {
		t.Errorf("with the transaction's token: %v", err)
	}
	if len(base.Args) != 1 || base.Args[0].Value != int64(7) {
		t.Errorf("arguments %v, want the token 7", base.Args)
	}
	if _, err := stmt.Exec(); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("outside of the transaction: %v, want ErrNoFence", err)
	}
}

// If a statement's context carries any token, even for another table, the transaction's tokens are ignored.
func TestStatementsOwnTokenWins(t *testing.T) {
	base := &fakedb.Recorder{}
	db := open(t, base, sqlfence.WithTable("books", fenced))
	tx, err := db.BeginTx(sqlfence.WithFence(t.Context(), token("books", 7)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	const query = "UPDATE books SET price = ?"
	if _, err := tx.ExecContext(sqlfence.WithFence(t.Context(), token("books", 8)), query, 1); err != nil {
		t.Fatal(err)
	}
	if len(base.Args) != 2 || base.Args[1].Value != int64(8) {
		t.Errorf("arguments %v, want the statement's own token, 8", base.Args)
	}
	if _, err := tx.ExecContext(sqlfence.WithFence(t.Context(), token("shelves", 8)), query, 1); !errors.Is(err, sqlfence.ErrNoFence) {
		t.Errorf("with a token for another resource: %v, want ErrNoFence", err)
	}
	// A Bypass isn't the transaction's, nor does the transaction's token undo one.
	if _, err := tx.ExecContext(sqlfence.Bypass(t.Context(), "repair"), query, 1); err != nil || len(base.Args) != 1 {
		t.Errorf("under Bypass: %v, arguments %v", err, base.Args)
	}
}

func TestTransactionKeepsTheEditorAlone(t *testing.T) {
	base := &fakedb.Recorder{}
	db := open(t, base, sqlfence.WithTable("invoice", sqlfence.Serial("serial", sqlfence.Required()), sqlfence.EditLock("editedby", "editedsince", "editedexpiry")))
	tx, err := db.BeginTx(sqlfence.WithEditor(sqlfence.WithSerial(t.Context(), 1), "ada"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(sqlfence.WithSerial(t.Context(), 1), "UPDATE invoice SET total = ? WHERE id = 1", 5); err != nil {
		t.Fatal(err)
	}
	if !argued(base, "ada") {
		t.Errorf("arguments %v, want the transaction's editor", base.Args)
	}
	if _, err := tx.ExecContext(sqlfence.WithEditor(sqlfence.WithSerial(t.Context(), 1), "bob"), "UPDATE invoice SET total = ? WHERE id = 1", 5); err != nil {
		t.Fatal(err)
	}
	if !argued(base, "bob") || argued(base, "ada") {
		t.Errorf("arguments %v, want the statement's editor", base.Args)
	}
	wantNoSerial(t, base, tx)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if tx, err = db.BeginTx(sqlfence.Bypass(t.Context(), "repair"), nil); err != nil {
		t.Fatal(err)
	}
	wantNoSerial(t, base, tx)
}

func argued(f *fakedb.Recorder, value any) bool {
	for _, a := range f.Args {
		if a.Value == value {
			return true
		}
	}
	return false
}

// wantNoSerial wants a write without a context to be guarded as one that has no serial.
func wantNoSerial(t *testing.T, f *fakedb.Recorder, tx *sql.Tx) {
	t.Helper()
	f.Mu.Lock()
	f.Sent = nil
	f.Mu.Unlock()
	_, err := tx.Exec("UPDATE invoice SET total = 5 WHERE id = 1")
	if !errors.Is(err, sqlfence.ErrNoSerial) && (len(f.Sent) != 1 || !strings.Contains(f.Sent[0], "sqlfence:nonce:required")) {
		t.Errorf("without a serial of its own: %v, sent %q", err, f.Sent)
	}
}
