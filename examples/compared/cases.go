package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/sqlfence/sqlfence/tokens"
)

// books is how many rows the table has.
const books = 2

var (
	updateOne = statement{"UPDATE books SET price = 20", "id = 1", []int{1}}
	deleteOne = statement{deletes, "id = 1", []int{1}}
	updateAll = statement{"UPDATE books SET price = 20", "id > 0", []int{1, 2}}
	takenOver = statement{"UPDATE books SET price = 30", "id = 1", []int{1}} // what B writes
)

// A situation holds the processes A and B after B has taken over from A.
type situation struct {
	approach
	a, b  *process
	admin *sql.DB // the pool of the table's owner, without sqlfence
}

// A late is a case of the table: a write after the writer has lost its right to write.
type late struct {
	head      [2]string // head of the case's column, in two lines
	statement statement
	waits     bool // B hasn't written yet
	write     func(ctx context.Context, s *situation, st statement) (int64, error)
}

var cases = []late{
	{[2]string{"late", "UPDATE"}, updateOne, false, asWanted},
	{[2]string{"late", "DELETE"}, deleteOne, false, asWanted},
	{[2]string{"late, of", "all rows"}, updateAll, false, asWanted},
	{[2]string{"late, after", "reading again"}, updateOne, false, again},
	{[2]string{"late, by code", "that forgot"}, updateOne, false, forgotten},
	{[2]string{"before B", "has written"}, updateOne, true, asWanted},
	{[2]string{"the owner,", "by psql"}, updateOne, false, byOwner},
}

// asWanted lets A write in the way of the approach.
func asWanted(ctx context.Context, s *situation, st statement) (int64, error) {
	return s.write(ctx, s.a, st)
}

// again lets A call hold and read a second time before writing.
func again(ctx context.Context, s *situation, st statement) (int64, error) {
	if err := s.hold(ctx, s.a); err != nil {
		return 0, err
	}
	return s.write(ctx, s.a, st)
}

// forgotten sends a statement of A's program, on its pool, by code that knows nothing of the approach.
func forgotten(ctx context.Context, s *situation, st statement) (int64, error) {
	return send(ctx, s.a.db, st)
}

// byOwner sends the statement as the table's owner, by a program that doesn't use the approach.
func byOwner(ctx context.Context, s *situation, st statement) (int64, error) {
	return send(ctx, s.admin, st)
}

// try plays all cases of an approach, and returns its line of the table.
func (a approach) try(ctx context.Context, db *database) (string, error) {
	var cells []string
	for _, c := range cases {
		cell, err := a.play(ctx, db, c)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", c.head[0], c.head[1], err)
		}
		cells = append(cells, cell)
	}
	waits := "no"
	if a.locks {
		waits = "yes"
	}
	cost, err := a.measure(ctx, db)
	return strings.Join(append(cells, waits, cost), "\t"), err
}

// play lets B take over from A, makes the case's late write, and returns the verdict.
func (a approach) play(ctx context.Context, db *database, c late) (string, error) {
	s, err := a.begin(ctx, db)
	if err != nil {
		return "", err
	}
	defer s.end()
	if err := s.takeOver(ctx, db); err != nil {
		return "", err
	}
	if !c.waits {
		if n, err := s.write(ctx, s.b, takenOver); err != nil || n != 1 {
			return "", fmt.Errorf("process B wrote %d rows: %w", n, err)
		}
	}
	before, err := db.rows(ctx)
	if err != nil {
		return "", err
	}
	_, refused := c.write(ctx, s, c.statement)
	after, err := db.rows(ctx)
	if err != nil {
		return "", err
	}
	return verdict(before, after, c.statement.rows, refused), nil
}

// verdict describes in a word how many of the rows were written.
func verdict(before, after map[int]int64, rows []int, refused error) string {
	written := 0
	for _, id := range rows {
		if price, there := after[id]; !there || price != before[id] {
			written++
		}
	}
	switch {
	case written == len(rows):
		return "LANDED"
	case written > 0:
		return "PART OF IT"
	case refused != nil:
		return "refused"
	}
	return "0 rows"
}

// begin makes the table and has A hold it.
func (a approach) begin(ctx context.Context, db *database) (*situation, error) {
	if err := db.create(ctx, a); err != nil {
		return nil, err
	}
	s := &situation{approach: a, admin: db.admin}
	var err error
	if s.a, err = a.process(ctx, db); err != nil {
		return nil, err
	}
	if err := a.hold(ctx, s.a); err != nil {
		s.a.close()
		return nil, fmt.Errorf("process A: %w", err)
	}
	return s, nil
}

func (s *situation) end() {
	for _, p := range []*process{s.a, s.b} {
		if p != nil {
			p.close()
		}
	}
}

// process opens a separate pool, and takes the next token.
func (a approach) process(ctx context.Context, db *database) (*process, error) {
	open := a.open
	if open == nil {
		open = func(db *database) (*sql.DB, error) { return db.bare() }
	}
	pool, err := open(db)
	if err != nil {
		return nil, err
	}
	db.token++
	p := &process{db: pool, token: db.token}
	if !a.ledger {
		return p, nil
	}
	store, err := tokens.New(pool)
	if err != nil {
		return nil, err
	}
	t, err := store.Issue(ctx, "books")
	p.token = t.Value
	return p, err
}

// takeOver makes B the holder. If A's session holds a lock, B can become the holder only after the server has ended the
// session.
func (s *situation) takeOver(ctx context.Context, db *database) (err error) {
	if s.b, err = s.process(ctx, db); err != nil {
		return err
	}
	err = s.hold(ctx, s.b)
	if s.locks != (err != nil) {
		return fmt.Errorf("process B, while A is paused: %w", err)
	}
	if !s.locks {
		return nil
	}
	if err := db.endSession(ctx, s.a); err != nil {
		return err
	}
	return s.hold(ctx, s.b)
}

// measure counts the statements and round trips of a holder's write, after some warm-up writes.
func (a approach) measure(ctx context.Context, db *database) (string, error) {
	s, err := a.begin(ctx, db)
	if err != nil {
		return "", err
	}
	defer s.end()
	const warm, counted = 3, 10
	var statements, turns int
	for i := range warm + counted {
		if i == warm {
			statements, turns = db.counted()
		}
		if a.each && i > 0 {
			if err := a.hold(ctx, s.a); err != nil {
				return "", err
			}
		}
		if n, err := a.write(ctx, s.a, takenOver); err != nil || n != 1 {
			return "", fmt.Errorf("wrote %d rows: %w", n, err)
		}
	}
	nowStatements, nowTurns := db.counted()
	// The average is rounded, because on a slow machine pgx may read before it writes, and a round trip isn't counted.
	each := func(n int) int { return (n + counted/2) / counted }
	return db.costs(each(nowStatements-statements), each(nowTurns-turns)), nil
}
