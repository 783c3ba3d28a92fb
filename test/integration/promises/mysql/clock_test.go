package mysql_test

import (
	"context"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// The session's clock is changed, so that another user's live lock seems to have expired.
func TestClockThatIsSet(t *testing.T) {
	dsn := setup(t)
	plain := open(t, dsn)
	exec(t, plain, "ALTER TABLE books ADD COLUMN editedby varchar(20), ADD COLUMN editedsince bigint, ADD COLUMN editedexpiry bigint")
	exec(t, plain, "INSERT INTO books (id, price, editedby, editedsince, editedexpiry) VALUES (1, 1, 'ada', 0, (UNIX_TIMESTAMP() + 3600) * 1000000)")
	db := fence(t, dsn, sqlfence.EditLock("editedby", "editedsince", "editedexpiry"))
	db.SetMaxOpenConns(1)
	const write = "UPDATE books SET price = 2"
	_, err := db.Exec(write)
	harness.WantError(t, err, sqlfence.ErrLocked)
	for _, query := range []string{
		"SET timestamp = 9999999999", "SET SESSION timestamp = 2000000000", "SET @@timestamp = 2000000000", "SET @a = 1, @@session.timestamp := 2000000000",
		"SET LOCAL `timestamp` = 2000000000", "SET @@LOCAL.timestamp = 2000000000", "/* x */ set /* y */ TimeStamp=2000000000",
		"EXECUTE IMMEDIATE 'SET timestamp = 2000000000'", "PREPARE p FROM 'SET @a = ''b'', timestamp = 2000000000'",
		"BEGIN NOT ATOMIC SET timestamp = 2000000000; END", "IF TRUE THEN SET @a = 1, SESSION timestamp = 2000000000; END IF",
		"UPDATE /*+ SET_VAR(timestamp = 2000000000) */ books SET price = 2", "UPDATE /*+ Set_Var ( TimeStamp=2000000000 ) */ books SET price = 2",
	} {
		_, err := db.Exec(query)
		harness.WantError(t, err, sqlfence.ErrUnguardable)
		_, err = db.Exec(write)
		harness.WantError(t, err, sqlfence.ErrLocked)
	}
	exec(t, db, "SET timestamp = DEFAULT, @timestamp = 2000000000")
	_, err = db.Exec(write)
	harness.WantError(t, err, sqlfence.ErrLocked)

	if _, err := db.ExecContext(sqlfence.Bypass(context.Background(), "a test"), "SET timestamp = 2000000000"); err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(write) // the guard uses the server's clock
	harness.WantError(t, err, sqlfence.ErrLocked)
}

// The server's answer to ANALYZE with arguments and without FORMAT makes go-sql-driver wait for more packets.
func TestAnalyzeIsRefused(t *testing.T) {
	dsn := setup(t)
	plain, db := open(t, dsn), fence(t, dsn, sqlfence.RowFence("fence_token"))
	refill(t, plain)
	_, err := db.ExecContext(holding(9), "ANALYZE UPDATE books SET price = ? WHERE id = 1", 7)
	harness.WantError(t, err, sqlfence.ErrUnguardable)
	if count(t, plain, untouched) != 3 {
		t.Error("rows have changed")
	}
}
