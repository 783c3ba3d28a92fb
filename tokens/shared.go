package tokens

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/share"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// An asking is for tokens of one name: of a statement of its own, or of one for several names.
type asking struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`

	last  int64 // 0 until it is settled
	calls int64 // that the statement has served
}

// takeAll sends one statement for several names. What it doesn't settle is left to takeAlone: a name without a
// row, with too few tokens left, or one that another transaction holds. If it has failed, all are: tokens that
// it may have taken are lost.
func (s *Store) takeAll(ctx context.Context, batch []*share.Member[*asking]) {
	all := make([]*asking, len(batch))
	for i, m := range batch {
		all[i] = m.Call
	}
	values, ok, err := s.dialect.shared(ctx, s, all)
	if err != nil {
		return
	}
	if !ok {
		s.sharing.Off()
	}
	var calls int64
	for _, m := range batch {
		if values[m.Call.Name] > 0 {
			calls += m.Call.Count
		}
	}
	for _, m := range batch {
		m.Call.calls = calls
		m.Call.last = values[m.Call.Name]
		m.Settled = m.Call.last > 0
	}
}

// sharing is a shared by a statement that takes a JSON array, and returns for each name whether statements can be
// shared here, and the last token, which is NULL where none was taken.
func sharing(
	f sqltext.Floored,
) func(ctx context.Context, s *Store, all []*asking) (values map[string]int64, ok bool, err error) {
	return func(ctx context.Context, s *Store, all []*asking) (values map[string]int64, ok bool, err error) {
		list, err := json.Marshal(all)
		if err != nil {
			return nil, false, err
		}
		err = s.sendFloored(ctx, f, func(text string) error {
			values, ok = make(map[string]int64, len(all)), true
			scan := func(rows *sql.Rows) error {
				var name string
				var here bool
				var last sql.NullInt64
				err := rows.Scan(&name, &here, &last)
				values[name], ok = last.Int64, ok && here
				return err
			}
			return s.in(ctx, s.dialect.takes, func(db session) error {
				return dialectopt.EachRow(ctx, db, scan, text, string(list))
			})
		})
		return values, ok, err
	}
}
