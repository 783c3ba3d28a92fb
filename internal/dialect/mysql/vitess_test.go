package mysql

import "testing"

// Only an error whose first value is UUID_TO_BIN's counts, whatever number vtgate has read, and nothing after the number.
func TestTabletErrorIsAGuardsOnly(t *testing.T) {
	const target = "target: sharded.80-.primary: vttablet: rpc error: code = Unknown desc = "
	for text, want := range map[string]string{
		target + "Incorrect string value: 'a' for function uuid_to_bin (errno 1411) (sqlstate HY000): Sql: 'b'":                             target + "Incorrect string value: 'a' for function uuid_to_bin",
		"reverted partial DML execution failure: " + target + "Incorrect string value: 'a' (errno 1411) (sqlstate HY000)\n" + target + "(b": "reverted partial DML execution failure: " + target + "Incorrect string value: 'a'",
		target + "Duplicate entry '(errno 1411) (sqlstate HY000) a' for key 'b' (errno 1062) (sqlstate 23000): Sql: 'c'":                    "",
		target + "Duplicate entry 'Incorrect string value: 'a (errno 1411) (sqlstate HY000)' for key 'b' (errno 1062)":                      "",
		target + "Incorrect datetime value: 'a' for function str_to_date (errno 1411) (sqlstate HY000)":                                     "",
		"target: a.b.primary: vttablet: (errno 1411) (sqlstate HY000): Sql: \"select 'Incorrect string value: 'a\"":                         "",
		"Incorrect string value: 'a' for function uuid_to_bin [TRUNCATED]":                                                                  "",
	} {
		if own, ok := tabletError(text); ok != (want != "") || ok && own != want {
			t.Errorf("%s: %q, %v", text, own, ok)
		}
	}
}
