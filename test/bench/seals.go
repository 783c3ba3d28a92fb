//go:build !base

package main

import (
	"context"
	"database/sql"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
)

// seals compares writes to a sealed table with writes to an unsealed table under the same rules. The sqlfence of -base
// may have no seals.
func seals() []*measurement {
	var all []*measurement
	for _, t := range []target{pgx} {
		for _, k := range t.kinds() {
			if k.name == "upsert" {
				continue
			}
			all = append(all, &measurement{table: "One row", on: t.name, name: k.name,
				contestants: t.sealContestants(func(r rule) func(*stage) (work, error) { return t.executing(k, r.wrap(), r, true) })})
		}
		all = append(all, &measurement{table: "Many rows", on: t.name, name: "UPDATE of 1,000 rows",
			contestants: t.sealContestants(func(r rule) func(*stage) (work, error) { return t.raising(r, 1_000) })})
	}
	return all
}

func (t target) sealContestants(start func(rule) func(*stage) (work, error)) (all []contestant) {
	fence, ledger, sealed := sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Sealed()
	seal := func(db *sql.DB) error { return schema.Seal(context.Background(), db) }
	for _, r := range []rule{
		{name: "RowFence", table: []sqlfence.Rule{fence}, fences: withToken},
		{name: sealedFence, table: []sqlfence.Rule{fence, sealed}, fences: withToken, seal: seal},
		{name: "RowFence, Ledger", table: []sqlfence.Rule{fence, ledger}, fences: withToken},
		{name: "RowFence, Ledger, Sealed", table: []sqlfence.Rule{fence, ledger, sealed}, fences: withToken, seal: seal},
	} {
		all = append(all, contestant{name: r.name, durability: t.durability, start: start(r)})
	}
	return all
}

// raising changes all rows of a table, prepared.
func (t target) raising(r rule, rows int) func(*stage) (work, error) {
	return func(s *stage) (work, error) {
		sh, err := t.openShop(s, r.wrap(), rows)
		if err != nil {
			return work{}, err
		}
		if err := r.seals(sh); err != nil {
			return work{}, err
		}
		stmt, err := sh.db.Prepare("UPDATE books SET price = price + 1")
		if err != nil {
			return work{}, err
		}
		sh.cleanup(func() { stmt.Close() })
		fence := r.contexts(1)[0]
		return work{call: func(context.Context, int) error {
			result, err := stmt.ExecContext(fence)
			return wrote(rows, result, err)
		}}, nil
	}
}
