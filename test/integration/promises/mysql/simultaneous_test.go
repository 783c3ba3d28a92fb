package mysql_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlfence/sqlfence"
	sqlschema "github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// In one of its sql_modes MariaDB refuses a column that is assigned twice, as a guard does. The error names this mode.
// If the application itself assigns a column twice, the error is the server's.
func TestSimultaneousAssignment(t *testing.T) {
	dsn := setup(t)
	strict := harness.MySQLWith(t, dsn, func(c *mysql.Config) { c.Params = map[string]string{"sql_mode": "'SIMULTANEOUS_ASSIGNMENT'"} })
	plain := open(t, dsn)
	if err := open(t, strict).Ping(); err != nil && strings.Contains(err.Error(), "SIMULTANEOUS_ASSIGNMENT") {
		t.Skip(err)
	}
	refill(t, plain)
	for _, c := range []struct {
		query, token string
		rules        []sqlfence.Rule
	}{
		{"UPDATE books SET price = 1 WHERE id = 1", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
		{"UPDATE books SET price = 1", "books/1", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.Serial("serial")}},
		{"UPDATE books SET id = 1 WHERE id = 1", "books/1", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
		{"INSERT INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 1", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token")}},
		{"INSERT INTO books (id) VALUES (1) ON DUPLICATE KEY UPDATE price = 1", "books/1", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Key("id"), sqlfence.Serial("serial")}},
		{"INSERT IGNORE INTO books (id, isbn) VALUES (1, 'i1') ON DUPLICATE KEY UPDATE id = 1, price = 1", "books/1", []sqlfence.Rule{sqlfence.Ledger(), sqlfence.Key("id")}},
		{"INSERT INTO books SET id = 1 ON DUPLICATE KEY UPDATE serial = 9", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Serial("serial")}},
		{"INSERT INTO books (id) SELECT 1 FROM pens ON DUPLICATE KEY UPDATE price = 1", "books", []sqlfence.Rule{sqlfence.RowFence("fence_token"), sqlfence.Ledger()}},
	} {
		db := fence(t, strict, c.rules...)
		_, err := db.ExecContext(of(c.token, 5), c.query)
		var u *sqlfence.UnguardableError
		if !errors.As(err, &u) || !strings.Contains(u.Reason, "SIMULTANEOUS_ASSIGNMENT") || number(err) != 4140 && !strings.HasPrefix(c.query, "INSERT") {
			t.Errorf("%s: %v", c.query, err)
		}
		_, err = db.ExecContext(of(c.token, 5), "DELETE FROM books WHERE id = 9")
		if err != nil {
			t.Errorf("%v", err)
		}
	}
	_, err := fence(t, strict, sqlfence.Ledger()).ExecContext(of("books", 5), "UPDATE books SET price = 1, price = 2")
	if errors.Is(err, sqlfence.ErrUnguardable) || number(err) != 4140 {
		t.Errorf("%v", err)
	}
	if count(t, plain, untouched) != 3 {
		t.Error("rows have changed")
	}
}

// In this mode each rule refuses a stale write of each kind. A write with the newest token succeeds as without the
// mode, or is refused by an error that names the mode.
func TestSimultaneousAssignmentByRulesAndKinds(t *testing.T) {
	dsn := setup(t)
	strict := harness.MySQLWith(t, dsn, func(c *mysql.Config) {
		c.Params = map[string]string{"sql_mode": "'SIMULTANEOUS_ASSIGNMENT,STRICT_TRANS_TABLES'"}
	})
	plain := open(t, dsn)
	if err := open(t, strict).Ping(); err != nil && strings.Contains(err.Error(), "SIMULTANEOUS_ASSIGNMENT") {
		t.Skip(err)
	}
	exec(t, plain, "CREATE TABLE claims (id int PRIMARY KEY, attempt bigint NOT NULL)")
	exec(t, plain, "INSERT INTO claims VALUES (1, 5)")
	exec(t, plain, "REPLACE INTO fencing_tokens VALUES ('marked', 5), ('marked/1', 5)")
	mark, key, claim := sqlfence.RowFence("mark"), sqlfence.Key("id"), sqlfence.Claim("mark")
	ledger, serial, sealed := sqlfence.Ledger(), sqlfence.Serial("serial"), sqlfence.Sealed()
	lock := sqlfence.EditLock("editedby", "editedsince", "editedexpiry")
	for name, rules := range map[string][]sqlfence.Rule{
		"RowFence": {mark}, "RowFence, Key": {mark, key}, "RowFence, SingleUse": {mark, sqlfence.SingleUse()},
		"Ledger": {ledger}, "Ledger, Key": {ledger, key}, "Ledger, RowFence": {ledger, mark},
		"RowFence, Serial": {mark, serial}, "RowFence, EditLock": {mark, lock}, "Serial": {serial}, "EditLock": {lock},
		"Claim": {claim, key}, "ClaimOf": {sqlfence.ClaimOf("claims"), key}, "Claim, Sealed": {claim, key, sealed},
		"RowFence, Sealed": {mark, sealed}, "RowFence, Key, Serial, Sealed": {mark, key, serial, sealed},
	} {
		exec(t, plain, "DROP TABLE IF EXISTS marked")
		exec(t, plain, "CREATE TABLE marked (id int PRIMARY KEY, price int NOT NULL DEFAULT 0, mark bigint NOT NULL DEFAULT 0, "+
			"serial bigint NOT NULL DEFAULT 0, editedby varchar(9), editedsince bigint, editedexpiry bigint)")
		fenced := func(dsn string) *sql.DB {
			db, err := sqlfence.Open("mysql", dsn, sqlfence.WithTable("marked", rules...),
				sqlfence.WithTable("claims", sqlfence.Key("id"), sqlfence.Claim("attempt")))
			return harness.CloseAtEnd(t, db, err)
		}
		usual, atOnce := fenced(dsn), fenced(strict)
		exec(t, plain, "INSERT INTO marked (id, mark) VALUES (1, 5)")
		if strings.Contains(name, "Sealed") {
			if err := sqlschema.Seal(t.Context(), usual); err != nil {
				t.Fatal(err)
			}
		}
		for _, query := range []string{
			"UPDATE marked SET price = 1 WHERE id = 1", "UPDATE marked AS m SET m.price = 1, m.id = 1 WHERE id = 1",
			"UPDATE marked SET price = 1 ORDER BY id LIMIT 1", "UPDATE marked JOIN pens USING (id) SET marked.price = 1",
			"UPDATE marked SET price = 1, mark = mark + 1 WHERE id = 1", "UPDATE marked SET serial = serial + 1 WHERE id = 1",
			"INSERT INTO marked (id, price) VALUES (1, 1) ON DUPLICATE KEY UPDATE price = 1",
			"INSERT INTO marked (id, price) SELECT 1, 1 ON DUPLICATE KEY UPDATE price = 1, id = VALUES(id)",
			"INSERT INTO marked (id, price) VALUES (1, 1) ON DUPLICATE KEY UPDATE mark = mark + 1",
			"INSERT INTO marked (id, price) VALUES (1, 1) ON DUPLICATE KEY UPDATE serial = serial + 1",
			"REPLACE INTO marked (id, price) VALUES (1, 1)", "DELETE FROM marked WHERE id = 1",
		} {
			for _, value := range []int64{4, 5, 6} {
				for _, take := range []bool{false, true} {
					send := func(db *sql.DB) (left string, err error) {
						tx, begin := db.BeginTx(t.Context(), nil)
						if begin != nil {
							t.Fatal(begin)
						}
						defer func() { _ = tx.Rollback() }()
						ctx := t.Context()
						for _, name := range []string{"marked", "marked/1", "claims/1"} {
							ctx = sqlfence.WithFence(ctx, sqlfence.Token{Name: name, Value: value})
						}
						if take {
							ctx = sqlfence.WithTakeover(ctx)
						}
						_, err = tx.ExecContext(ctx, query)
						row := tx.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(id, ' ', price, ' ', mark, ' ', serial) FROM marked")
						_ = row.Scan(&left)
						return left, err
					}
					left, err := send(usual)
					got, gotErr := send(atOnce)
					var u *sqlfence.UnguardableError
					named := errors.As(gotErr, &u) && strings.Contains(u.Reason, "SIMULTANEOUS_ASSIGNMENT")
					before := map[bool]string{true: "1 0 5 0"}[named || gotErr != nil]
					if before == "" {
						before = left
					}
					if got != before || (err == nil) != (gotErr == nil) && !named || err != nil && gotErr != nil && !named && number(err) != number(gotErr) {
						t.Errorf("%s: %s with %d (takes over: %v): %v leaves %s; under the mode %v leaves %s", name, query, value, take, err, left, gotErr, got)
					}
				}
			}
		}
	}
}
