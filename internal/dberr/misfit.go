package dberr

import "strings"

// IsMisfit reports whether err says that the values of an INSERT which names no columns
// aren't as many as the table has columns, or of other types. In PostgreSQL other
// mistakes have the same codes.
func IsMisfit(err error) bool {
	switch SQLState(err) {
	case "":
		return err != nil && strings.Contains(err.Error(), " values were supplied") && strings.Contains(err.Error(), " columns but ")
	case SyntaxError, DatatypeMismatch, GeneratedAlways:
		return true
	}
	return false
}

// IsWithByRule reports whether err is PostgreSQL's for a statement with WITH of which a
// rule makes several. Its messages are translated, but for the keywords.
func IsWithByRule(err error) bool {
	return SQLState(err) == FeatureNotSupported && strings.Contains(err.Error(), "WITH")
}
