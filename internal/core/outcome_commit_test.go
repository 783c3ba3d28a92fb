package core

import "testing"

func TestMayCommit(t *testing.T) {
	for query, want := range map[string]bool{
		"COMMIT":                        true,
		"commit;":                       true,
		"COMMIT AND CHAIN":              true,
		"/* a */ -- b\nEnd Transaction": true,
		"SELECT 1; COMMIT":              true,
		"SELECT 1;\n\tend ; BEGIN":      true,
		"/*! COMMIT */":                 true, // MySQL executes it
		"":                              true,
		"COMMIT PREPARED 'a'":           false,
		"ROLLBACK":                      false,
		"RELEASE a":                     false,
		"BEGIN":                         false,
		"BEGIN; INSERT INTO pens VALUES (1); COMMIT": false,
		"SET a = b; BEGIN; DELETE FROM pens; COMMIT": false,
		"SELECT CASE WHEN true THEN 1 END; SELECT 2": false,
		"SELECT 1":  false,
		"SELECT 1;": false,
		"CREATE TABLE committed (end_of integer)": false,
	} {
		if got := mayCommit(query); got != want {
			t.Errorf("mayCommit(%q) = %v", query, got)
		}
	}
}
