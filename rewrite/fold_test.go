package rewrite

import (
	"strings"
	"testing"

	databases "github.com/sqlfence/sqlfence/internal/dialect"
	"github.com/sqlfence/sqlfence/internal/guard"
)

// TestFoldedByLocale: BÜCHER is bücher in a database with a single-byte encoding, and bÜcher in UTF8. A word that
// may be either is refused.
func TestFoldedByLocale(t *testing.T) {
	tables := []Table{
		{Name: "bücher", FenceColumn: "märke", Key: "schlüssel"},
		{Schema: "läden", Name: "issues", FenceColumn: "f"},
		{Name: "ärger", Ledger: true},
	}
	for sql, want := range map[string]guard.Verdict{
		"UPDATE bücher SET preis = 1":                             guard.Guard,
		"UPDATE Bücher SET preis = 1":                             guard.Guard,
		`UPDATE "bücher" SET preis = 1`:                           guard.Guard,
		"UPDATE BÜCHER SET preis = 1":                             guard.Refuse,
		"UPDATE bÜcher SET preis = 1":                             guard.Refuse,
		"SELECT 1; DELETE FROM BÜCHER":                            guard.Refuse,
		"DO $$ BEGIN DELETE FROM BÜCHER; END $$":                  guard.Refuse,
		"UPDATE bücher SET MÄRKE = 1":                             guard.Refuse,
		"UPDATE bücher SET SCHLÜSSEL = 1":                         guard.Refuse,
		"INSERT INTO bücher (SCHLÜSSEL, schlüssel) VALUES (1, 2)": guard.Refuse,
		`UPDATE "BÜCHER" SET preis = 1`:                           guard.Pass,
		"UPDATE BÜCHEREI SET preis = 1":                           guard.Pass,
		"UPDATE preise SET name = 'BÜCHER'":                       guard.Pass,
		"UPDATE İSSUES SET preis = 1":                             guard.Refuse,
		"UPDATE FENCİNG_TOKENS SET token = 0":                     guard.Refuse,
		"UPDATE LÄDEN.issues SET preis = 1":                       guard.Refuse,
		"UPDATE Ärger SET preis = 1":                              guard.Refuse,
		"UPDATE ärger SET preis = 1":                              guard.Guard,
	} {
		r, err := New(databases.Postgres, tables)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Plan(sql)
		if p.Verdict != want {
			t.Errorf("%s: %v, want %v: %s", sql, p.Verdict, want, p.Refusal.Reason)
		}
		if want == guard.Refuse && !strings.HasPrefix(sql, "DO") && !strings.Contains(p.Refusal.Reason, "double quotes") {
			t.Errorf("%s: %s", sql, p.Refusal.Reason)
		}
	}
	r, err := New(databases.SQLite, tables[:1]) // SQLite folds only ASCII letters
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Plan("UPDATE BÜCHER SET preis = 1"); p.Verdict != guard.Pass {
		t.Errorf("SQLite: %v", p.Verdict)
	}
}

// TestLooksAtDO: a text without a registered name is parsed if it may contain a DO, wherever that stands. It isn't
// parsed for words and clauses that look like a DO.
func TestLooksAtDO(t *testing.T) {
	for sql, want := range map[string]bool{
		"DO $$ x $$":                 true,
		" \n\tdo'x'":                 true,
		"-- a\n--b\nDO $$ x $$":      true,
		"/* a /* b */ */dO $$ x $$":  true,
		"SELECT 1;DO $$ x $$":        true,
		"SELECT 1; ;; DO $$ x $$":    true,
		"SELECT 1;/**/ do\n$$ x $$":  true,
		"SELECT 1;--\r\ndo\n$$ x $$": true,
		"SELECT 1; /*" + strings.Repeat("/**/", 1000) + "*/ DO $$ x $$": true,
		"INSERT INTO prices VALUES (1) ON CONFLICT DO NOTHING":          false,
		"SELECT 1; -- a comment\nSELECT 2":                              false,
		"-- name: Get :one\nSELECT 1;":                                  false,
		"SELECT 1; doc":                                                 false,
		"double":                                                        false,
		"do$$":                                                          false, // a name
		"":                                                              false,
		";":                                                             false,
		"-":                                                             false,
		"--":                                                            false,
	} {
		r, err := New(databases.Postgres, []Table{{Name: "books", Ledger: true}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.rules.Finds(sql); got != want {
			t.Errorf("%.40q: %v, want %v", sql, got, want)
		}
		if r, _ = New(databases.Postgres, nil); r.rules.Finds(sql) {
			t.Errorf("%.40q is read although no table is registered", sql)
		}
	}
}
