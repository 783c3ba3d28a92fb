package conformance

import (
	"context"

	"github.com/sqlfence/sqlfence"
)

var ruleChecks = []check{
	{name: "single use", guarantee: singleUse,
		explanation: "On a SingleUse table a token that was seen is refused the second time."},
	{name: "keys", guarantee: keys,
		explanation: "With Key a token covers its own row only, and other rows are refused with ErrOutOfScope."},
	{name: "claims", guarantee: claims,
		explanation: "With Claim a statement that raises a row's column takes the row over without a token, and any " +
			"other write of a row presents its claim, or is refused."},
	{name: "claims of another table", guarantee: claimsOf,
		explanation: "With ClaimOf the writes of a table present the claims of another one's rows, or are refused."},
	{name: "unknown name", guarantee: unknownName,
		explanation: "A token of a name that the ledger doesn't know is refused with ErrUnknownName."},
	{name: "other tables", guarantee: otherTables,
		explanation: "G7: statements on tables that aren't registered need no token and are not changed."},
}

func singleUse(f *fenced) {
	db := f.open(nil, books(sqlfence.RowFence("fence_token"), sqlfence.SingleUse()))
	f.eachWrite(func(what string, w write, send sender) {
		if !w.meets {
			return
		}
		f.changesNothing(what, func() { f.wantStale(what, send(holding(9), db), 9, 9) })
		f.wantPassed(what+" with a new token", send(holding(10), db))
	})
}

func keys(f *fenced) {
	of := func(name string, value int64) context.Context {
		return sqlfence.WithFence(context.Background(), sqlfence.Token{Name: name, Value: value})
	}
	db := f.open(nil, books(sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
	query, args := f.bind("UPDATE books SET price = ? WHERE id = ?"), []any{30, 1}
	for _, way := range ways {
		f.changesNothing(way.name, func() {
			f.wantError(way.name+": another row's token", way.run(of("books/2", 10), db, query, args...), sqlfence.ErrOutOfScope)
			f.wantError(way.name+": the table's token", way.run(of("books", 10), db, query, args...), sqlfence.ErrNoFence)
			f.wantError(way.name+": stale", way.run(of("books/1", 8), db, query, args...), sqlfence.ErrStale)
			f.wantError(way.name+": all rows", way.run(of("books/1", 10), db, "UPDATE books SET price = 30"),
				sqlfence.ErrOutOfScope)
		})
		f.wantPassed(way.name+": the row's own token", way.run(of("books/1", 10), db, query, args...))
		f.want(way.name+": left", f.state(), "1:30@10 2:10@9 3:10@9")
	}
}

func claims(f *fenced) {
	claim := func(generation int64) context.Context {
		return sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "books/1", Value: generation})
	}
	db := f.open(nil, books(sqlfence.Key("id"), sqlfence.Claim("fence_token")))
	query, args := f.bind("UPDATE books SET price = ? WHERE id = ?"), []any{30, 1}
	const raises = "UPDATE books SET fence_token = fence_token + 1 WHERE id <= 2"
	for _, way := range ways {
		f.changesNothing(way.name, func() {
			f.wantError(way.name+": no claim", way.run(context.Background(), db, query, args...), sqlfence.ErrNoFence)
			f.wantError(way.name+": an older claim", way.run(claim(8), db, query, args...), sqlfence.ErrStale)
			f.wantError(way.name+": a claim that was never given", way.run(claim(10), db, query, args...), sqlfence.ErrStale)
			f.wantError(way.name+": another row", way.run(claim(9), db, "UPDATE books SET price = 30"), sqlfence.ErrOutOfScope)
			f.wantError(way.name+": a takeover that doesn't raise",
				way.run(context.Background(), db, "UPDATE books SET fence_token = 9"), sqlfence.ErrConflict)
		})
		f.wantPassed(way.name+": the row's claim", way.run(claim(9), db, query, args...))
		f.wantPassed(way.name+": a takeover", way.run(context.Background(), db, raises))
		f.wantError(way.name+": a claim that was taken over", way.run(claim(9), db, query, args...), sqlfence.ErrStale)
		f.want(way.name+": left", f.state(), "1:30@10 2:10@10 3:10@9")
	}
}

func claimsOf(f *fenced) {
	db := f.open(nil, books(sqlfence.Key("id"), sqlfence.Claim("fence_token")), sqlfence.WithTable("pens", sqlfence.ClaimOf("books")))
	claim := func(of ...sqlfence.Token) context.Context { return sqlfence.WithFence(context.Background(), of...) }
	one := sqlfence.Token{Name: "books/1", Value: 9}
	for _, way := range ways {
		f.reset(9)
		for _, w := range []struct {
			query string
			args  []any
		}{
			{"INSERT INTO pens (id, price) VALUES (?, ?)", []any{7, 1}},
			{"UPDATE pens SET price = ? WHERE id = ?", []any{2, 7}},
			{"DELETE FROM pens WHERE id = ?", []any{7}},
		} {
			query, what := f.bind(w.query), way.name+": "+w.query
			f.wantError(what+": no claim", way.run(context.Background(), db, query, w.args...), sqlfence.ErrNoFence)
			f.wantError(what+": an older claim", way.run(claim(sqlfence.Token{Name: "books/1", Value: 8}), db, query, w.args...), sqlfence.ErrStale)
			f.wantError(what+": one of two", way.run(claim(one, sqlfence.Token{Name: "books/2", Value: 10}), db, query, w.args...), sqlfence.ErrStale)
			f.wantError(what+": of no row", way.run(claim(sqlfence.Token{Name: "books/4", Value: 9}), db, query, w.args...), sqlfence.ErrStale)
			f.wantPassed(what+": the row's claim", way.run(claim(one), db, query, w.args...))
		}
	}
}

func unknownName(f *fenced) {
	db := f.open(nil, books(sqlfence.Ledger(), sqlfence.Resource("shelf")))
	ctx := sqlfence.WithFence(context.Background(), sqlfence.Token{Name: "shelf", Value: 5})
	f.eachWrite(func(what string, _ write, send sender) {
		f.changesNothing(what, func() { f.wantError(what, send(ctx, db), sqlfence.ErrUnknownName) })
	})
}

func otherTables(f *fenced) {
	for _, fence := range f.fences() {
		rec := f.recorder()
		db := f.open(rec, books(fence.rule()))
		f.reset(9)
		for _, way := range ways {
			for _, query := range []string{"INSERT INTO pens (id, price) VALUES (1, 2) -- books", "UPDATE  pens SET price = 3",
				"DELETE FROM pens", "SELECT id FROM books"} {
				rec.take()
				f.must(way.run(context.Background(), db, query))
				for _, sent := range rec.take().statements() {
					f.want(way.name+": sent", sent, query)
				}
			}
		}
	}
}
