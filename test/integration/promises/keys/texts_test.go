package keys_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// If a column stores a new row's key as another text than the statement's, the INSERT is refused. The test tries random
// spellings of numbers and UUIDs in columns of each type that a key may have.

// spelling returns a text that some type may read.
func spelling(rnd *rand.Rand) string {
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	digits := func(of string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(of[rnd.IntN(len(of))])
		}
		return b.String()
	}
	var s string
	switch rnd.IntN(8) {
	case 0:
		s = digits("0123456789", 1+rnd.IntN(4))
	case 1:
		s = pick("0x", "0X", "0o", "0O", "0b", "0B", "0x_", "0b_") + digits("01", 1+rnd.IntN(3)) + pick("", "", "_1", "__1", "7", "a", "F")
	case 2:
		s = digits("123", 1+rnd.IntN(2)) + pick("_", "__", "", ".", "._", "_.") + digits("0123", rnd.IntN(3)) + pick("", "_", ".", ".0", "e0", "e1", "E-1", "e1_0")
	case 3:
		s = pick("NaN", "nan", "Infinity", "inf", "-inf", "+Infinity", "true", "T", "null", "NULL", `\x41`, `\X41`, `\x4`, `\x4 1`, `\\`, "0x", "_1", "1_", "x1", "a_b", "2026-11", "1e", "e1", "-", "+", ".", "")
	case 4:
		s = digits("0", rnd.IntN(30)) + digits("0123456789", 1+rnd.IntN(25))
	case 5:
		s = digits("0123456789abcdef", 32)
	default:
		s = digits("0123456789abcdef", 32)
		for i := 28; i > 0; i -= 4 {
			if rnd.IntN(3) == 0 || rnd.IntN(8) > 0 && (i == 8 || i == 12 || i == 16 || i == 20) {
				s = s[:i] + pick("-", "-", "-", "--", "_", "") + s[i:]
			}
		}
	}
	if rnd.IntN(6) == 0 {
		s = strings.ToUpper(s)
	}
	if rnd.IntN(6) == 0 {
		s = pick("+", "-", "{", "(", "--") + s + pick("", "}")
	}
	if rnd.IntN(6) == 0 {
		s = pick("", " ", "\t", "\v", "\n", "\u00a0", "\ufeff") + s + pick("", " ", "\f", "\r", "\u2003")
	}
	return s
}

// storedAs returns what a query of one text returns, in a transaction that is rolled back.
func storedAs(t *testing.T, db *sql.DB, query string, args []any) (string, error) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var got sql.NullString
	err = tx.QueryRowContext(t.Context(), query, args...).Scan(&got)
	return got.String, err
}

func TestKeysStoredAsTheyAreWritten(t *testing.T) {
	const each = 600
	types := map[sqlfence.Dialect][]string{
		sqlfence.Postgres: {"smallint", "integer", "bigint", "numeric", "uuid", "text", "varchar"},
		sqlfence.SQLite:   {"INTEGER PRIMARY KEY", "INTEGER", "NUMERIC", "TEXT", "BLOB", ""},
	}
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		source := b.DSN(t)
		plain := b.Raw(t, source)
		text := map[sqlfence.Dialect]string{sqlfence.Postgres: "id::text", sqlfence.SQLite: "CAST(id AS TEXT)"}[b.Dialect]
		for i, column := range types[b.Dialect] {
			t.Run(column, func(t *testing.T) {
				table := fmt.Sprintf("books%d", i)
				if _, err := plain.ExecContext(t.Context(), "CREATE TABLE "+table+" (id "+column+", mark bigint)"); err != nil {
					t.Fatal(err)
				}
				db := b.Fenced(t, source, sqlfence.WithTable(table, sqlfence.RowFence("mark"), sqlfence.Key("id"), sqlfence.Resource("books")))
				seed := harness.Seed(t)
				rnd := rand.New(rand.NewPCG(seed, 0))
				var stored, moved int
				for range each {
					s := spelling(rnd)
					values, args := "($1)", []any{s}
					switch rnd.IntN(4) {
					case 0:
						values, args = "('"+s+"')", nil
						if strings.Contains(s, `\`) {
							continue // sqlfence may refuse a backslash in a literal
						}
					case 1:
						if b.Dialect == sqlfence.SQLite {
							values = "(CAST($1 AS TEXT))"
						} else if !strings.Contains(column, "PRIMARY") {
							values = "($1::" + column + ")"
						}
					}
					got, err := storedAs(t, plain, "INSERT INTO "+table+" (id) VALUES "+values+" RETURNING "+text, args)
					if err != nil {
						continue // the column's type doesn't accept this text
					}
					stored++
					if got == s {
						continue
					}
					moved++
					ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/" + s, Value: 1})
					_, err = db.ExecContext(ctx, "INSERT INTO "+table+" (id) VALUES "+values, args...)
					if !errors.Is(err, sqlfence.ErrUnguardable) && !errors.Is(err, sqlfence.ErrNoFence) && !errors.Is(err, sqlfence.ErrOutOfScope) {
						t.Errorf("seed %d: %q by %s is stored as %q: %v", seed, s, values, got, err)
					}
				}
				if stored == 0 || moved == 0 && strings.ContainsAny(column, "IiNn") && column != "varchar" {
					t.Errorf("seed %d: of %d spellings %d were stored, %d as another text", seed, each, stored, moved)
				}
			})
		}
	})
}

// An INSERT whose key has a cast is guarded, whatever argument the driver takes.
func TestKeyWithCast(t *testing.T) {
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	seven := int64(7)
	for _, tt := range []struct {
		column, value, key string
		args               []any
		only               string // the only driver that accepts this argument; "" for all drivers
	}{
		{"bigint", "$1::bigint", "7", []any{7}, ""},
		{"bigint", "$1::bigint", "7", []any{"7"}, ""},
		{"bigint", "$1::bigint", "7", []any{&seven}, ""},
		{"bigint", "$1::bigint", "7", []any{sql.NullInt64{Int64: 7, Valid: true}}, ""},
		{"integer", "CAST($1 AS integer)", "7", []any{int32(7)}, ""},
		{"integer", "$1::pg_catalog.int4", "7", []any{uint8(7)}, ""},
		{"smallint", "$1 :: int2", "7", []any{int16(7)}, ""},
		{"text", "$1::text", "i7", []any{"i7"}, ""},
		{"text", "$1::varchar", "i7", []any{sql.NullString{String: "i7", Valid: true}}, ""},
		{"text", "$1::character varying", "i7", []any{"i7"}, ""},
		{"uuid", "$1::uuid", id, []any{id}, ""},
		{"uuid", "CAST($1 AS uuid)", id, []any{[16]byte{0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}}, "pgx"},
		{"uuid", "uuid '" + id + "'", id, nil, ""},
		{"uuid", "'" + id + "'::uuid", id, nil, ""},
		{"bigint", "'7'::text::bigint", "7", nil, ""},
	} {
		t.Run(tt.value, func(t *testing.T) {
			harness.EachBase(t, func(t *testing.T, b harness.Base) {
				if b.Dialect != sqlfence.Postgres || tt.only != "" && tt.only != b.Name {
					t.Skip("not for this driver")
				}
				s := harness.NewShop(t, b)
				s.Exec(t, "DROP TABLE books")
				s.Exec(t, "CREATE TABLE books (id "+tt.column+" PRIMARY KEY, price integer DEFAULT 10, fence_token bigint)")
				db := b.Fenced(t, s.Source, harness.Books(sqlfence.RowFence("fence_token"), sqlfence.Key("id")))
				insert := "INSERT INTO books (id) VALUES (" + tt.value + ")"
				token := func(key string, value int64) sqlfence.Token {
					return sqlfence.Token{Name: "books/" + key, Value: value}
				}
				for name, run := range harness.Ways {
					if err := run(sqlfence.WithFence(t.Context(), token("other", 9)), db, insert, tt.args...); !errors.Is(err, sqlfence.ErrOutOfScope) {
						t.Errorf("%s with another row's token: %v", name, err)
					}
					if err := run(sqlfence.WithFence(t.Context(), token(tt.key, 9)), db, insert, tt.args...); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					update := "UPDATE books SET id = " + tt.value + ", price = 11"
					if err := run(sqlfence.WithFence(t.Context(), token(tt.key, 9)), db, update, tt.args...); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if err := run(sqlfence.WithFence(t.Context(), token(tt.key, 8)), db, update, tt.args...); !errors.Is(err, sqlfence.ErrStale) {
						t.Errorf("%s with an older token: %v", name, err)
					}
					if err := run(sqlfence.WithFence(t.Context(), token("other", 9)), db, update, tt.args...); !errors.Is(err, sqlfence.ErrOutOfScope) {
						t.Errorf("%s with another row's token: %v", name, err)
					}
					var key string
					if err := s.Plain.QueryRowContext(t.Context(), "DELETE FROM books RETURNING id::text").Scan(&key); err != nil || key != tt.key {
						t.Errorf("%s stored %q, %v", name, key, err)
					}
				}
			})
		})
	}
}

// SQLite stores the first value of a column that is named twice.
func TestKeyNamedTwice(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		for _, columns := range []string{"id, id, price", `"id", price, ID`, "id, price, id"} {
			ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/7", Value: 1}, sqlfence.Token{Name: "books/8", Value: 1})
			for name, run := range harness.Ways {
				if err := run(ctx, s.DB, "INSERT INTO books ("+columns+") VALUES ($1, $2, $3)", 7, 8, 8); !errors.Is(err, sqlfence.ErrUnguardable) {
					t.Errorf("%s by %s: %v", columns, name, err)
				}
			}
		}
		unchanged()
	})
}

// The key's placeholder has a name, and the argument has none. Drivers bind such arguments by their places, or not at
// all.
func TestKeyOfAnotherArgument(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		if b.Dialect != sqlfence.SQLite {
			t.Skip("only SQLite has placeholders with names")
		}
		s := harness.NewShop(t, b, sqlfence.RowFence("fence_token"), sqlfence.Key("id"))
		s.Reset(t, 9)
		unchanged := s.Unchanged(t)
		ctx := sqlfence.WithFence(t.Context(), sqlfence.Token{Name: "books/7", Value: 1})
		for _, tt := range []struct {
			placeholders, advice string
			args                 []any
		}{
			{"$key, $price", `sql.Named("key", ...)`, []any{7, 8}},
			{":key, :price", `sql.Named("key", ...)`, []any{sql.Named("kye", 7), sql.Named("price", 8)}},
			{"?, ?", "write a name", []any{sql.Named("key", 7), sql.Named("price", 8)}},
		} {
			_, err := s.DB.ExecContext(ctx, "INSERT INTO books (id, price) VALUES ("+tt.placeholders+")", tt.args...)
			if harness.WantError(t, err, sqlfence.ErrUnguardable); err != nil && !strings.Contains(err.Error(), tt.advice) {
				t.Errorf("%s: it doesn't say what to do: %v", tt.placeholders, err)
			}
		}
		unchanged()
		if _, err := s.DB.ExecContext(ctx, "INSERT INTO books (id, price) VALUES ($key, :price)", sql.Named("price", 8), sql.Named("key", 7)); err != nil {
			t.Error(err)
		}
	})
}
