package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// bulk are statements that write many rows.
func bulk() []*measurement {
	var all []*measurement
	for _, t := range []target{mattn, modernc, pq, pgx} {
		for _, f := range t.forms() {
			took := make(map[string]time.Duration) // by 1,000 rows, if it grows by the square
			for _, rows := range []int{1_000, 5_000, 30_000} {
				m := &measurement{table: "INSERT", on: t.name, name: fmt.Sprintf("%s rows, %s placeholders", thousands(rows), f.name), long: rows > 1_000}
				m.contestants = bulkContestants(t, rules, func(r rule, wrap wrapping) func(*stage) (work, error) {
					return notAfter(took, r.name, rows, t.inserting(f, wrap, r, rows))
				})
				all = append(all, m)
			}
		}
	}
	without := append(append([]rule(nil), rules[:3]...), rules[4]) // a key's token is for one row
	for _, t := range []target{mattn, modernc, mattnFull, pq, pgx} {
		for _, query := range []string{"UPDATE books SET price = 20", "DELETE FROM books WHERE price < 50"} {
			verb, _, _ := strings.Cut(query, " ")
			all = append(all, &measurement{table: "UPDATE and DELETE", on: t.name, name: verb + " of 1,000 rows",
				contestants: bulkContestants(t, without, func(r rule, wrap wrapping) func(*stage) (work, error) {
					return t.changing(query, wrap, r, 1_000)
				})})
		}
	}
	return all
}

func bulkContestants(t target, rules []rule, start func(rule, wrapping) func(*stage) (work, error)) []contestant {
	all := []contestant{{name: "plain", durability: t.durability, start: start(rule{name: "plain"}, bare)}}
	for _, r := range rules {
		all = append(all, contestant{name: r.name, durability: t.durability, fenced: true, start: start(r, r.wrap())})
	}
	return all
}

// A form is a way to write the arguments of many rows.
type form struct {
	name string
	slot func(i int) string
	arg  func(i int) any
}

func (t target) forms() []form {
	value := func(int) any { return int64(1) } // all rows have the key 1
	numbered := form{"numbered", func(i int) string { return fmt.Sprintf("$%d", i+1) }, value}
	if !t.bare {
		return []form{numbered}
	}
	return []form{
		{"bare", func(int) string { return "?" }, value},
		{"numbered", func(i int) string { return fmt.Sprintf("?%d", i+1) }, value},
		{"named", func(i int) string { return fmt.Sprintf(":a%d", i+1) },
			func(i int) any { return sql.Named(fmt.Sprintf("a%d", i+1), int64(1)) }},
	}
}

// inserting adds rows with an argument each to a table that has no index.
func (t target) inserting(f form, wrap wrapping, r rule, rows int) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		sh, err := t.openShop(s, wrap, 1)
		if err != nil {
			return work{}, err
		}
		if err := setUp(sh.db, "DROP TABLE books", fmt.Sprintf(`CREATE TABLE books (id bigint,
			fence_token bigint, serial bigint, editedby bigint, editedsince %s, editedexpiry %[1]s)`, t.moment)); err != nil {
			return work{}, err
		}
		slots, args := make([]string, rows), make([]any, rows)
		for i := range rows {
			slots[i], args[i] = "("+f.slot(i)+")", f.arg(i)
		}
		query := "INSERT INTO books (id) VALUES " + strings.Join(slots, ", ")
		fence := r.contexts(1)[0]
		return work{
			before: func(context.Context) error { return setUp(sh.db, "DELETE FROM books") },
			call: func(context.Context, int) error {
				result, err := sh.db.ExecContext(fence, query, args...)
				return wrote(rows, result, err)
			},
		}, nil
	}
}

// changing changes or deletes all rows. Deleted ones are added again, which isn't measured.
func (t target) changing(query string, wrap wrapping, r rule, rows int) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		sh, err := t.openShop(s, wrap, rows)
		if err != nil {
			return work{}, err
		}
		fence := r.contexts(1)[0]
		return work{
			before: func(context.Context) error { return setUp(sh.db, "DELETE FROM books", sh.fill(1, rows)) },
			call: func(context.Context, int) error {
				result, err := sh.db.ExecContext(fence, query)
				return wrote(rows, result, err)
			},
		}, nil
	}
}

// tooSlow begins the reason for which a contestant is kept from a larger measurement.
const tooSlow = "too slow:"

// notAfter keeps a contestant from a measurement in which a call would take longer than
// five seconds, if its time grows by the square of the rows.
func notAfter(took map[string]time.Duration, name string, rows int, start func(*stage) (work, error)) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		if a := took[name] * time.Duration(rows/1_000) * time.Duration(rows/1_000); a > 5*time.Second {
			return work{}, errSkip(fmt.Sprintf("%s fewer rows took so long that these might take %v", tooSlow, a.Round(time.Second)))
		}
		w, err := start(s)
		if err != nil {
			return w, err
		}
		call := w.call
		w.call = func(ctx context.Context, caller int) error {
			begun := time.Now()
			err := call(ctx, caller)
			took[name] = time.Since(begun) / time.Duration(rows/1_000) / time.Duration(rows/1_000)
			return err
		}
		return w, nil
	}
}
