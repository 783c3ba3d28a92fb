package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// An approach is a way to keep a holder from writing after another holder has taken over.
type approach struct {
	name string

	// create has the statements that prepare the table books for the approach.
	create []string

	// ledger: the approach takes its tokens from the ledger.
	ledger bool

	// open returns the pool of a process. It is nil if the process uses the base driver without sqlfence.
	open func(db *database) (*sql.DB, error)

	// hold makes a process the holder, or returns errHeld if another process is. A second call stands for a process
	// that reads its data again without knowing about the takeover.
	hold func(ctx context.Context, p *process) error

	// write sends a statement in the way of the approach, and returns the number of written rows.
	write func(ctx context.Context, p *process, s statement) (int64, error)

	// locks: a session holds the lock. If each is true, the session holds the lock for one write only.
	locks, each bool
}

// A statement is a holder's write. The approaches add to the statement's parts.
type statement struct {
	verb  string // "UPDATE books SET price = 20" or "DELETE FROM books"
	where string
	rows  []int // the ids that it reaches
}

func (s statement) String() string { return s.verb + " WHERE " + s.where }

// setting adds an assignment, which a DELETE has no place for.
func (s statement) setting(assignment string) statement {
	if s.verb != deletes {
		s.verb += ", " + assignment
	}
	return s
}

const deletes = "DELETE FROM books"

// A process is A or B, with its data in memory.
type process struct {
	db       *sql.DB
	token    int64
	versions map[int]int64 // by id, as it last read them
	session  *sql.Conn
	tx       *sql.Tx
}

// errHeld: another process is the holder.
var errHeld = errors.New("held by another process")

// A sender is a pool, a session or a transaction.
type sender interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func send(ctx context.Context, to sender, s statement) (int64, error) {
	result, err := to.ExecContext(ctx, s.String())
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// close closes the process's transaction, session and pool. It ignores errors, because the server may have ended the
// session.
func (p *process) close() {
	if p.tx != nil {
		_ = p.tx.Rollback()
	}
	if p.session != nil {
		_ = p.session.Close()
	}
	_ = p.db.Close()
}

// nothing: each process that considers itself the holder writes.
var nothing = approach{
	name:  "nothing",
	hold:  func(context.Context, *process) error { return nil },
	write: func(ctx context.Context, p *process, s statement) (int64, error) { return send(ctx, p.db, s) },
}

// version writes only rows that still have the version that the process read.
var version = approach{
	name:   "version column",
	create: []string{"ALTER TABLE books ADD COLUMN version bigint NOT NULL DEFAULT 1"},
	hold: func(ctx context.Context, p *process) error {
		p.versions = map[int]int64{}
		for id := 1; id <= books; id++ {
			var v int64
			if err := p.db.QueryRowContext(ctx, fmt.Sprintf("SELECT version FROM books WHERE id = %d", id)).Scan(&v); err != nil {
				return err
			}
			p.versions[id] = v
		}
		return nil
	},
	write: func(ctx context.Context, p *process, s statement) (int64, error) {
		s.where = "false"
		for _, id := range s.rows {
			s.where += fmt.Sprintf(" OR id = %d AND version = %d", id, p.versions[id])
			p.versions[id]++
		}
		return send(ctx, p.db, s.setting("version = version + 1"))
	},
}

// triggerOnColumn makes each statement write its token into a column. A trigger compares the token with the stored
// token.
func triggerOnColumn(trigger ...string) approach {
	return approach{
		name:   "trigger on a token's column",
		create: append([]string{addToken}, trigger...),
		hold:   func(context.Context, *process) error { return nil },
		write: func(ctx context.Context, p *process, s statement) (int64, error) {
			return send(ctx, p.db, s.setting(fmt.Sprintf("fence_token = %d", p.token)))
		},
	}
}

const addToken = "ALTER TABLE books ADD COLUMN fence_token bigint NOT NULL DEFAULT 0"
