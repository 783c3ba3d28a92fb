package claims_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// A keySpelling is a type of key column, with keys and other spellings of them. For documented types, an integer, a
// text or a UUID, sqlfence distinguishes another row's token from the row's.
type keySpelling struct {
	column     string
	keys       []string
	spellings  []string
	documented bool
}

var (
	integers  = []string{"1", "7", "42", "-3"}
	zeros     = []string{"01", "+7", " 42 ", "-03", "8", "0042", "x", "7x7", "42.5"}
	numbers   = append(zeros, "42.0", "4.2e1", "-3.00")
	words     = []string{"ab", "Ab", "job-1", "é", "7"}
	spelled   = []string{"AB", "ab ", "ab   ", "JOB-1", "É", "é ", "job-2", "07", "äb", "к"}
	uuids     = []string{"aaaaaaaa-bbbb-1ccc-8ddd-eeeeeeeeeeee", "00000000-0000-1000-8000-000000000001"}
	otherwise = []string{"AAAAAAAA-BBBB-1CCC-8DDD-EEEEEEEEEEEE", "aaaaaaaabbbb1ccc8dddeeeeeeeeeeee",
		"00000000-0000-1000-8000-000000000002", "7"}
	days = []string{"2024-01-02", "2024-11-12"}
	day  = []string{"2024-1-2", "20240102", "2024-01-03"}
)

func spells(documented bool, keys, spellings []string, columns ...string) (all []keySpelling) {
	for _, column := range columns {
		all = append(all, keySpelling{column, keys, spellings, documented})
	}
	return all
}

func keySpellings(d sqlfence.Dialect) []keySpelling {
	switch d {
	case sqlfence.Postgres:
		return slices.Concat(
			spells(true, integers, zeros, "bigint", "smallint", "key_number"),
			spells(false, integers, numbers, "numeric", "numeric(10,2)", "float8"),
			spells(true, words, spelled, "text", "varchar(9)", "char(9)", "key_word"),
			spells(true, words[1:], spelled, "text COLLATE key_case"),
			spells(true, []string{"ab", "Ab"}, spelled, "key_mood"),
			spells(true, uuids, append(otherwise, "{"+uuids[0]+"}"), "uuid"),
			spells(false, days, day, "date", "timestamptz"))
	case sqlfence.MySQL:
		const wide = " CHARACTER SET utf8mb4 COLLATE utf8mb4_"
		return slices.Concat(
			spells(true, integers, numbers, "bigint"),
			spells(true, integers[:3], numbers, "int(5) zerofill", "bigint unsigned"),
			spells(false, integers, numbers, "decimal(10,2)", "float", "double"),
			spells(false, []string{"2024", "2001"}, []string{"24", "2002", "01"}, "year"),
			spells(true, words, spelled, "varchar(9)"+wide+"bin", "varbinary(9)"),
			spells(true, words[1:], spelled, "varchar(9)"+wide+"general_ci", "char(9)"+wide+"unicode_ci"),
			spells(false, words[1:], spelled, "varchar(9) CHARACTER SET latin1"),
			spells(false, []string{"ab", "job-1"}, spelled, "enum('ab', 'job-1')"),
			spells(true, uuids, otherwise, "uuid"),
			spells(false, days, day, "date", "datetime"))
	default:
		return slices.Concat(
			spells(true, integers, numbers, "INTEGER", "REAL", "NUMERIC"),
			spells(true, words, spelled, "TEXT", "TEXT COLLATE RTRIM", "BLOB", ""),
			spells(true, words[1:], spelled, "TEXT COLLATE NOCASE"))
	}
}

// A takeover presents a claim whose name spells the row's key differently from the database's output. If the server
// considers both spellings equal, the claim counts as the row's, current or stale. Otherwise it is another row's claim.
func TestTakeoverComparesClaimsThatSpellTheKeyOtherwise(t *testing.T) {
	harness.EachBase(t, func(t *testing.T, b harness.Base) {
		for i, kind := range keySpellings(b.Dialect) {
			for _, more := range []int{0, 20} {
				if testing.Short() && more > 0 && i%4 > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s with %d more", kind.column, more), func(t *testing.T) { kind.takeOver(t, b, more) })
			}
		}
	})
}

func (k keySpelling) takeOver(t *testing.T, b harness.Base, more int) {
	dsn := b.DSN(t)
	plain := b.Raw(t, dsn)
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := plain.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if b.Dialect == sqlfence.Postgres {
		run("CREATE DOMAIN key_number AS bigint")
		run("CREATE DOMAIN key_word AS text")
		run("CREATE TYPE key_mood AS ENUM ('ab', 'Ab')")
		run("CREATE COLLATION key_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	}
	run("CREATE TABLE spelled (k " + k.column + " PRIMARY KEY, place int NOT NULL, attempt bigint NOT NULL)")
	literal := func(s string) string { return "'" + s + "'" }
	for i, key := range k.keys {
		run(fmt.Sprintf("INSERT INTO spelled VALUES (%s, %d, 5)", literal(key), i))
	}
	fenced := b.Fenced(t, dsn, sqlfence.WithTable("spelled", sqlfence.Key("k"), sqlfence.Claim("attempt")))
	var others []sqlfence.Token
	for i := range more { // other rows' tokens in each documented type
		others = append(others, sqlfence.Token{Name: fmt.Sprintf("spelled/%d", 1000+i), Value: 9})
		if k.column == "uuid" {
			others[i].Name = fmt.Sprintf("spelled/%08d%s", i, uuids[0][8:])
		}
	}
	for place, key := range k.keys {
		for i, spelling := range append(k.keys[:len(k.keys):len(k.keys)], k.spellings...) {
			same := k.holdsEqual(t, plain, place, literal(spelling))
			for j, value := range []int64{4, 5, 6} {
				if testing.Short() && (place+i)%3 != j { // one of the values for each spelling
					continue
				}
				token, err := sqlfence.ClaimToken("spelled", spelling, value)
				if err != nil {
					continue
				}
				what := fmt.Sprintf("key %q by a claim of %q with %d", key, spelling, value)
				ctx := sqlfence.WithFence(t.Context(), append(others[:more:more], token)...)
				_, err = fenced.ExecContext(ctx, fmt.Sprintf("UPDATE spelled SET attempt = attempt + 1 WHERE place = %d", place))
				var stale *sqlfence.StaleError
				switch {
				case same && value != 5 && err == nil:
					t.Errorf("%s was taken over", what)
				case (k.documented || more == 0) && same && value == 4 && !errors.Is(err, sqlfence.ErrStale),
					(k.documented || more == 0) && same && value == 6 && !errors.Is(err, sqlfence.ErrNotIssued):
					t.Errorf("%s: %v", what, err)
				case same && value == 4 && more == 0 && (!errors.As(err, &stale) || stale.Token != token || stale.Current != 5):
					t.Errorf("%s: %#v", what, err)
				case (k.documented || more == 0 && value == 5) && (!same || value == 5) && err != nil:
					t.Errorf("%s: %v", what, err)
				case err != nil && !errors.Is(err, sqlfence.ErrStale) && !errors.Is(err, sqlfence.ErrNotIssued):
					t.Errorf("%s: %v", what, err)
				}
				run(fmt.Sprintf("UPDATE spelled SET attempt = 5 WHERE place = %d", place))
			}
		}
	}
}

// holdsEqual reports whether the server takes a row's key for equal to a constant. If the constant isn't a value of the
// key's type, no key is equal to it.
func (k keySpelling) holdsEqual(t *testing.T, plain *sql.DB, place int, constant string) (same bool) {
	t.Helper()
	query := fmt.Sprintf("SELECT count(*) FROM spelled WHERE place = %d AND (k = %s)", place, constant)
	if &k.keys[0] == &integers[0] && strings.Contains(constant, "x") {
		return false // MySQL reads the beginning of it
	}
	var n int
	err := plain.QueryRowContext(t.Context(), query).Scan(&n)
	return err == nil && n > 0
}
