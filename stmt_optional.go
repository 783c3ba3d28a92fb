package sqlfence

//lint:file-ignore SA1019 base drivers may have nothing newer than what is deprecated

import "database/sql/driver"

// checkedStmt is for a base statement that checks its arguments itself.
type checkedStmt struct{ *stmt }

var _ driver.NamedValueChecker = checkedStmt{}

// CheckNamedValue implements driver.NamedValueChecker.
func (s checkedStmt) CheckNamedValue(v *driver.NamedValue) error {
	n := v.Ordinal
	v.Ordinal = s.place(n)
	err := s.base.(driver.NamedValueChecker).CheckNamedValue(v)
	v.Ordinal = n
	return err
}

// convertingStmt is for a base statement that says how to convert arguments.
type convertingStmt struct{ *stmt }

var _ driver.ColumnConverter = convertingStmt{}

// ColumnConverter implements driver.ColumnConverter.
func (s convertingStmt) ColumnConverter(i int) driver.ValueConverter {
	return s.base.(driver.ColumnConverter).ColumnConverter(s.place(i+1) - 1)
}

// A bothStmt is for a base statement that does either.
type bothStmt struct{ checkedStmt }

var _ driver.ColumnConverter = bothStmt{}

// ColumnConverter implements driver.ColumnConverter.
func (s bothStmt) ColumnConverter(i int) driver.ValueConverter {
	return convertingStmt{s.stmt}.ColumnConverter(i)
}

// withOptional returns s with the base statement's optional interfaces. Without
// one of them database/sql turns to the connection's NamedValueChecker, or to
// its own default.
func (s *stmt) withOptional() driver.Stmt {
	_, checks := s.base.(driver.NamedValueChecker)
	_, converts := s.base.(driver.ColumnConverter)
	switch {
	case checks && converts:
		return bothStmt{checkedStmt{s}}
	case checks:
		return checkedStmt{s}
	case converts:
		return convertingStmt{s}
	}
	return s
}
