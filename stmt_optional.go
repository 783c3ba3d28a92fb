package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// plainStmt is a stmt as database/sql gets it: queries go through sqlmw, which
// intercepts the rows, and executions don't, as there is nothing to intercept.
type plainStmt struct {
	*stmt
	queries driver.StmtQueryContext
}

// QueryContext implements driver.StmtQueryContext.
func (s plainStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.queries.QueryContext(ctx, args)
}

// checkedStmt is for a base statement that checks its arguments itself.
type checkedStmt struct{ plainStmt }

var _ driver.NamedValueChecker = checkedStmt{}

// CheckNamedValue implements driver.NamedValueChecker.
func (s checkedStmt) CheckNamedValue(v *driver.NamedValue) error {
	return s.base.(driver.NamedValueChecker).CheckNamedValue(v)
}

// convertingStmt is for a base statement that says how to convert arguments.
type convertingStmt struct{ plainStmt }

var _ driver.ColumnConverter = convertingStmt{}

// ColumnConverter implements driver.ColumnConverter.
func (s convertingStmt) ColumnConverter(i int) driver.ValueConverter {
	return s.base.(driver.ColumnConverter).ColumnConverter(i)
}

// newStmt returns s with the base statement's optional interfaces; mw is
// sqlmw's statement around s. Without one of them database/sql turns to the
// connection's NamedValueChecker, or to its own default.
func newStmt(s *stmt, mw driver.Stmt) (driver.Stmt, error) {
	queries, ok := mw.(driver.StmtQueryContext)
	if !ok {
		return nil, closing(s.Close, fmt.Errorf("sqlfence: sqlmw's statement %T lacks QueryContext", mw))
	}
	plain := plainStmt{s, queries}
	_, checks := s.base.(driver.NamedValueChecker)
	_, converts := s.base.(driver.ColumnConverter)
	switch {
	case checks && converts:
		return struct {
			checkedStmt
			driver.ColumnConverter
		}{checkedStmt{plain}, convertingStmt{plain}}, nil
	case checks:
		return checkedStmt{plain}, nil
	case converts:
		return convertingStmt{plain}, nil
	}
	return plain, nil
}
