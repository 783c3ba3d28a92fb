package memdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// A session runs scripts, one after the other, and knows of their transaction.
type session struct {
	db       *Database
	inTx     bool
	readOnly bool
	written  tables // by the transaction; nil if it has not written
	lastID   int64
}

// run runs a script and returns the results of the statements before the one
// that fails.
func (s *session) run(ctx context.Context, sc *script, args []driver.NamedValue) (results []*result, err error) {
	values, err := sc.bind(args)
	if err != nil {
		return nil, err
	}
	for _, statement := range sc.statements {
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		r, err := s.execute(ctx, statement, values)
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

func (s *session) execute(ctx context.Context, st statement, args []driver.Value) (r *result, err error) {
	switch {
	case st.control == "BEGIN":
		return &result{}, s.begin(driver.TxOptions{})
	case st.control != "":
		return &result{}, s.end(st.control == "COMMIT")
	case st.writes && s.readOnly:
		return nil, &Error{"attempt to write a readonly database"}
	}
	e := &execution{ctx: ctx, args: args, tables: s.db.current()}
	if s.written != nil {
		e.tables = s.written
	}
	if !st.writes {
		return s.apply(e, st)
	}
	if s.written == nil {
		if err := s.db.lock(ctx); err != nil {
			return nil, err
		}
		e.tables = s.db.current()
		defer func() {
			if s.written == nil {
				s.db.unlock()
			}
		}()
	}
	e.tables = e.tables.clone()
	if r, err = s.apply(e, st); err != nil {
		return nil, err
	}
	if s.inTx {
		s.written = e.tables
	} else {
		s.db.commit(e.tables)
	}
	return r, nil
}

func (s *session) apply(e *execution, st statement) (r *result, err error) {
	defer caught(&err)
	r = st.run(&scope{execution: e})
	if e.lastID != 0 {
		s.lastID = e.lastID
	}
	r.lastID = s.lastID
	return r, nil
}

func (s *session) begin(opts driver.TxOptions) error {
	switch level := sql.IsolationLevel(opts.Isolation); {
	case s.inTx:
		return &Error{"cannot start a transaction within a transaction"}
	case level != sql.LevelDefault && level != sql.LevelSerializable:
		return &Error{"isolation level " + level.String() + " is not supported"}
	}
	s.inTx, s.readOnly = true, opts.ReadOnly
	return nil
}

func (s *session) end(commit bool) error {
	if !s.inTx {
		return &Error{"no transaction is active"}
	}
	if s.written != nil {
		if commit {
			s.db.commit(s.written)
		}
		s.db.unlock()
	}
	s.inTx, s.readOnly, s.written = false, false, nil
	return nil
}

// bind returns the values of a script's placeholders.
func (sc *script) bind(args []driver.NamedValue) ([]driver.Value, error) {
	if len(args) != len(sc.names) {
		return nil, &Error{"wrong number of arguments"}
	}
	values := make([]driver.Value, len(args))
	for i, name := range sc.names {
		found := false
		for _, arg := range args {
			if arg.Name == "" && arg.Ordinal == i+1 || arg.Name != "" && len(name) > 1 && name[1:] == arg.Name {
				values[i], found = arg.Value, true
			}
		}
		if !found {
			return nil, &Error{"missing argument " + name}
		}
	}
	return values, nil
}
