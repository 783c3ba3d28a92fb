package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// keyColumns are types of a key column. keyValues are values that programs may store in a key column.
var (
	keyColumns = []string{"bigint", "int unsigned", "tinyint", "bigint zerofill", "int(3) zerofill", "bigint AUTO_INCREMENT", "varchar(3)", "char(3)",
		"varchar(20) COLLATE utf8mb4_general_ci", "varbinary(3)", "binary(3)", "decimal(4,1)", "decimal(20,0)", "double", "float",
		"date", "datetime", "time", "year", "enum('4', '2', 'x')", "set('a', 'b')", "bit(8)"}
	keyValues = []any{"4", 4, int64(2), "4x", " 4", "4 ", "x4", "4.6", 4.6, "4.0", 70000, "16777217", 16777217, -1, "-1", "+4", "4e0",
		"abcd", "abcd ", "ab", "ab ", "AB", "é", "éééé", "2024-01-31", "2024-02-31", "20240131", 20240131, "24", "12:00", "a,a", "b,a", 1,
		"18446744073709551616", "99999", "007", "x", `A\t`, "0.4", 256}
)

// A row is written only if the key that the column stores is the key of the token, whatever the column's type makes of
// the value.
func TestKeysThatTheServerChanges(t *testing.T) {
	dsn := setup(t)
	most := len(keyValues) / 3
	count := harness.Rounds(t, most)
	for i, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			r, values := rand.New(rand.NewPCG(harness.Seed(t), uint64(i))), slices.Clone(keyValues)
			k := storedKeys{T: t, plain: open(t, m.with(t, dsn)), guards: []*sql.DB{
				fence(t, m.with(t, dsn), sqlfence.RowFence("fence_token"), sqlfence.Key("id")),
				fence(t, m.with(t, dsn), sqlfence.Ledger(), sqlfence.Key("id")),
				fence(t, m.with(t, dsn), sqlfence.RowFence("fence_token"), sqlfence.Ledger(), sqlfence.Key("id"), sqlfence.Serial("serial")),
			}}
			for _, column := range keyColumns {
				r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
				exec(t, k.plain, "DROP TABLE IF EXISTS books")
				exec(t, k.plain, "CREATE TABLE books (id "+column+" PRIMARY KEY, isbn varchar(20), fence_token bigint, serial bigint) ENGINE=InnoDB")
				for _, value := range values[:count] {
					k.try(column, value)
				}
			}
			least := 300 * count / most
			if t.Logf("%d rows were written, %d refused for their keys", k.written, k.refused); k.written < least || k.refused < least {
				t.Error("too few")
			}
		})
	}
}

type storedKeys struct {
	*testing.T
	plain            *sql.DB
	guards           []*sql.DB
	written, refused int
}

// stored returns the key of the only row; empty if there is no row.
func (k *storedKeys) stored() string {
	k.Helper()
	var key sql.NullString // a bit string may not be valid UTF-8
	err := k.plain.QueryRow("SELECT CAST(CONVERT(id USING utf8mb4) AS BINARY) FROM books").Scan(&key)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		k.Fatal(err)
	}
	return key.String
}

// try writes a value as the key of a new row, and as the key of an existing row.
func (k *storedKeys) try(column string, value any) {
	k.Helper()
	token := sqlfence.Token{Name: fmt.Sprint("books/", value), Value: 3}
	exec(k, k.plain, "REPLACE INTO fencing_tokens VALUES (?, 3)", token.Name)
	ctx := sqlfence.WithFence(context.Background(), token)
	for i, db := range k.guards {
		for _, query := range []string{
			"INSERT INTO books (id, isbn) VALUES (?, 'i1')",
			"INSERT IGNORE INTO books SET id = ?, isbn = 'i1'",
			"INSERT IGNORE INTO books (isbn, id) VALUES ('i1', ?)",
			"INSERT IGNORE INTO books (id, isbn) SELECT ?, 'i1'",
			"INSERT INTO books (id, isbn) VALUES (?, 'i1') ON DUPLICATE KEY UPDATE isbn = 'i2'",
			"UPDATE IGNORE books SET id = ?",
			"INSERT IGNORE INTO books (id, isbn) VALUES (?, 'i1') ON DUPLICATE KEY UPDATE id = VALUES(id)",
		} {
			exec(k, k.plain, "DELETE FROM books")
			before := ""
			if query[:6] == "UPDATE" {
				if _, err := k.plain.Exec("INSERT IGNORE INTO books (id) VALUES (?)", fmt.Sprint(value)); err != nil {
					continue
				}
				before = k.stored()
			}
			_, err := db.ExecContext(ctx, query, value)
			switch after := k.stored(); {
			case after == before:
				if errors.Is(err, sqlfence.ErrOutOfScope) {
					k.refused++
				}
			case err != nil:
				k.Errorf("%s, guard %d, %s, %T %[4]v: written in spite of %v", column, i, query, value, err)
			case "books/"+after != token.Name:
				k.Errorf("%s, guard %d, %s, %T %[4]v: the row is now %q", column, i, query, value, after)
			default:
				k.written++
			}
		}
	}
}
