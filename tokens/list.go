package tokens

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/dberr"
	"github.com/sqlfence/sqlfence/internal/dialectopt"
	"github.com/sqlfence/sqlfence/internal/poll"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

const listSize = 1000

// List yields the newest token of each name that begins with prefix, ordered by name. Value is as stored: 0 without a
// token, above [sqlfence.MaxToken] for a retired name, and below 0 only after a manual change. Each query reads 1,000
// names. A standby may return old data. An error, such as [sqlfence.ErrInvalid], ends the loop. List needs the
// privilege SELECT.
//
//	for token, err := range store.List(ctx, "jobs/") {
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[sqlfence.Token, error] {
	return func(yield func(sqlfence.Token, error) bool) {
		s.eachName(ctx, prefix, false, func(i Issued, err error) bool { return yield(i.Token, err) })
	}
}

// ListIssued is [Store.List] with the record of [Store.RecordIssuers].
func (s *Store) ListIssued(ctx context.Context, prefix string) iter.Seq2[Issued, error] {
	return func(yield func(Issued, error) bool) { s.eachName(ctx, prefix, true, yield) }
}

func (s *Store) eachName(ctx context.Context, prefix string, issuers bool, yield func(Issued, error) bool) {
	fail := func(err error) {
		yield(Issued{}, fmt.Errorf("tokens: list: %w", dialectopt.Explain(ctx, s.db, err, s.needs("SELECT"))))
	}
	if prefix != "" {
		var err error
		if prefix, err = normalize(prefix); err != nil {
			yield(Issued{}, err)
			return
		}
	}
	if issuers {
		columns, err := s.columns(ctx)
		if err != nil {
			fail(err)
			return
		}
		lacks, err := s.lacksForIssuers(columns)
		issuers = err == nil && len(lacks) == 0
	}
	for after, more := "", true; more; {
		page, err := s.page(ctx, prefix, after, issuers)
		if err != nil {
			fail(err)
			return
		}
		for _, i := range page {
			if !yield(i, nil) {
				return
			}
			after = i.Token.Name
		}
		more = len(page) == listSize
	}
}

// page returns the first names after another name that begin with prefix.
func (s *Store) page(ctx context.Context, prefix, after string, issuers bool) (page []Issued, err error) {
	more := ""
	if issuers {
		more = ", " + s.dialect.Capabilities().Issuers.Read
	}
	text := render(s.dialect, "SELECT name, COALESCE(token, 0)"+more+" FROM {ledger} WHERE "+s.dialect.page+
		" ORDER BY name LIMIT "+strconv.Itoa(listSize))
	err = s.reading(ctx, func(db session) error {
		page = page[:0]
		return dialectopt.EachRow(ctx, db, func(rows *sql.Rows) error {
			var i Issued
			var by sql.NullString
			var at sql.NullInt64
			into := []any{&i.Token.Name, &i.Token.Value, &by, &at}
			if !issuers {
				into = into[:2]
			}
			err := rows.Scan(into...)
			if i.Token.Value > 0 {
				i.By = strings.ToValidUTF8(by.String, "\ufffd")
			}
			if i.Token.Value > 0 && at.Valid {
				i.At = time.UnixMicro(at.Int64)
			}
			page = append(page, i)
			return err
		}, text, after, prefix)
	})
	return page, err
}

// Watch yields the newest token of name, and then each change, until the loop or ctx ends. Without a token, Value is 0.
// It polls every interval, which must be positive. A standby may return old data. [sqlfence.ErrInvalid] ends the loop;
// other errors come with the zero Token.
func (s *Store) Watch(ctx context.Context, name string, interval time.Duration) iter.Seq2[sqlfence.Token, error] {
	return func(yield func(sqlfence.Token, error) bool) {
		name, err := normalize(name)
		if err == nil && interval <= 0 {
			err = fmt.Errorf("%w: an interval of %v, want more than 0", sqlfence.ErrInvalid, interval)
		}
		if err != nil {
			yield(sqlfence.Token{}, err)
			return
		}
		ask := func(ctx context.Context) (sqlfence.Token, error) {
			value, err := s.query(ctx, s.dialect.current, name)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return sqlfence.Token{}, fmt.Errorf("tokens: watch %q: %w", name, s.explain(ctx, err))
			}
			return sqlfence.Token{Name: name, Value: value}, nil
		}
		poll.Changes(ctx, interval, ask, func(a, b sqlfence.Token) bool { return a == b })(yield)
	}
}

// An Issued is the newest token of a name, with who changed it last, and when, for display: any client that may write
// to the ledger can change both.
type Issued struct {
	Token sqlfence.Token

	// By is the session, such as "shop@10.0.0.3, pid 4711, worker-7" (docs/data/ledger.md); empty on SQLite.
	By string

	// At is the time by the database's clock. By and At are zero without a record.
	At time.Time
}

// RecordIssuers makes the database record who changes each token, and when, for [Store.ListIssued]. It adds the columns
// issued_by (not on SQLite) and issued_at to the ledger, with triggers or defaults. Call it after Setup, at every start
// if you like. The role needs the powers of the table's owner, or ALTER and TRIGGER on MySQL and MariaDB. It locks the
// table for a moment and retries until ctx ends, so give ctx a deadline.
//
// Errors: an untyped error if a column of that name has another type; [sqlfence.ErrNotSetUp] without a ledger.
func (s *Store) RecordIssuers(ctx context.Context) error {
	for pause := (dberr.Backoff{Next: time.Second, Max: 8 * time.Second}); ; {
		err := s.recordIssuers(ctx)
		switch {
		case err == nil:
			return nil
		case !dberr.IsLockTimeout(err) && !dberr.IsRolledBack(err) && !dberr.IsBusy(err), pause.Wait(ctx) != nil:
			err = dialectopt.Explain(ctx, s.db, err, s.needs("")) // no GRANT helps with other privileges
			return fmt.Errorf("tokens: record issuers: %w", err)
		}
	}
}

func (s *Store) recordIssuers(ctx context.Context) error {
	issuers := s.dialect.Capabilities().Issuers
	if issuers.Whole != "" {
		return s.exec(ctx, issuers.Whole)
	}
	columns, err := s.columns(ctx)
	if err != nil {
		return err
	}
	lacks, err := s.lacksForIssuers(columns)
	if err != nil {
		return err
	}
	found, err := s.triggers(ctx)
	if err != nil {
		return err
	}
	texts := lacking(issuers.Triggers, found)
	if len(lacks) > 0 {
		texts = append([]string{sqltext.AddColumns(lacks)}, texts...)
	}
	if len(texts) == 0 {
		return nil
	}
	err = s.onOne(ctx, texts)
	if err != nil && len(lacks) > 0 {
		// Another process may have added them meanwhile.
		if now, _ := s.columns(ctx); len(now) > len(columns) {
			return s.recordIssuers(ctx)
		}
	}
	return err
}

// lacksForIssuers returns the columns that the ledger lacks for the record. A column of another type is an error.
func (s *Store) lacksForIssuers(columns []column) (lacks []sqltext.IssuerColumn, err error) {
	for _, own := range s.dialect.Capabilities().Issuers.Columns {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == own.Name })
		switch {
		case i < 0:
			lacks = append(lacks, own)
		case !strings.HasPrefix(columns[i].typ, own.Type):
			return nil, fmt.Errorf("the table %s has a column %s of its own: it is of type %s, want %s",
				sqltext.LedgerTable, own.Name, columns[i].typ, own.Type)
		}
	}
	return lacks, nil
}
