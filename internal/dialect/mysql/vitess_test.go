package mysql

import (
	"strings"
	"testing"
)

// Only an error whose first value is UUID_TO_BIN's counts, whatever number vtgate has read, and nothing after the value.
func TestTabletErrorIsAGuardsOnly(t *testing.T) {
	const target = "target: sharded.80-.primary: vttablet: rpc error: code = Unknown desc = "
	const number = "(errno 1411) (sqlstate HY000)"
	pad := func(value string) string { return value + strings.Repeat(".", valueSize-len(value)) }
	for text, want := range map[string]string{
		target + "Incorrect string value: 'a' for function uuid_to_bin " + number + ": Sql: 'b'":                                                target + "Incorrect string value: 'a'",
		"reverted partial DML execution failure: " + target + "Incorrect string value: 'a' for function uuid_to_bin (errno 1\n" + target + "(b": "reverted partial DML execution failure: " + target + "Incorrect string value: 'a'",
		target + "Incorrect string value: '" + pad("(errno 1213) (sqlstate 40001) ") + afterValue + "1411)":                                     target + "Incorrect string value: '" + pad("(errno 1213) (sqlstate 40001) ") + "'",
		target + "Incorrect string value: '" + pad("a"+afterValue+"1213) (sqlstate 40001)") + afterValue + "1411)":                              target + "Incorrect string value: '" + pad("a"+afterValue+"1213) (sqlstate 40001)") + "'",
		target + "Incorrect string value: '" + pad("a") + "b" + afterValue + "1411)":                                                            "",
		target + "Duplicate entry '" + number + " a' for key 'b' (errno 1062) (sqlstate 23000): Sql: 'c'":                                       "",
		target + "Duplicate entry 'Incorrect string value: 'a' for function uuid_to_bin " + number + "' for key 'b' (errno 1062)":               "",
		target + "Incorrect string value: '\\xF0\\x9F' for column 'isbn' at row 1 (errno 1366) (sqlstate HY000)":                                "",
		target + "Incorrect datetime value: 'a' for function str_to_date " + number:                                                             "",
		"target: a.b.primary: vttablet: " + number + ": Sql: \"select 'Incorrect string value: 'a' for function uuid_to_bin " + number:          "",
		"Incorrect string value: 'a' for function uuid_to_bin":                                                                                  "",
		"Incorrect string value: 'a' for function uuid_to_bin [TRUNCATED]":                                                                      "",
		"Incorrect string value: 'a": "",
		"":                           "",
	} {
		if own, ok := tabletError(text); ok != (want != "") || ok && own != want {
			t.Errorf("%s: %q, %v", text, own, ok)
		}
	}
}
