package vitess_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
)

// killShard ends the session of the server behind vtgate that has an open transaction in the database of the second
// shard.
func killShard(t *testing.T) {
	t.Helper()
	dsn := os.Getenv("SQLFENCE_VITESS_MYSQL")
	if dsn == "" {
		need.Missing(t, "vitess", "SQLFENCE_VITESS_MYSQL is not set; run make vitess")
	}
	mysql := open(t, dsn)
	var id int64
	if err := mysql.QueryRow("SELECT p.id FROM information_schema.innodb_trx AS x JOIN performance_schema.processlist AS p "+
		"ON p.id = x.trx_mysql_thread_id WHERE p.db = ? AND x.trx_rows_modified > 0", "vt_sharded_80-").Scan(&id); err != nil {
		t.Fatal(err)
	}
	exec(t, mysql, fmt.Sprint("KILL ", id))
}

// vtgate commits a transaction shard by shard. If a shard is lost meanwhile, the commits of the others stay. The
// application gets ErrUnknownOutcome. A retry under the same token completes the write, and a stale write is refused in
// the shards that have committed.
func TestCommitOverShardsIsNotAtomic(t *testing.T) {
	dsn, plain := setup(t, "sharded")
	db := fence(t, dsn, sqlfence.RowFence("fence_token"))
	write := func(ctx context.Context, price int, lost bool) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, id := range []int{1, 4} {
			if _, err := tx.ExecContext(ctx, "UPDATE books SET price = ? WHERE id = ?", price, id); err != nil {
				return err
			}
		}
		if lost {
			killShard(t)
		}
		return tx.Commit()
	}
	// vtgate commits the shards in the order in which the transaction reached them, also by sqlfence's first queries.
	db.SetMaxOpenConns(1)
	reset(t, plain)
	if err := write(holding(5), 55, false); err != nil {
		t.Fatal(err)
	}
	reset(t, plain)
	err := write(holding(7), 77, true)
	t.Logf("%v", err)
	if !errors.Is(err, sqlfence.ErrUnknownOutcome) {
		t.Errorf("%v, want ErrUnknownOutcome", err)
	}
	if want := "1:a:77:7:1 2:b:10:4:1 4:c:10:4:1 "; content(t, plain) != want {
		t.Errorf("%s, want the write of one shard only: %s", content(t, plain), want)
	}
	if err := write(holding(6), 66, false); !errors.Is(err, sqlfence.ErrStale) {
		t.Errorf("%v, want ErrStale", err)
	}
	if err := write(holding(7), 77, false); err != nil {
		t.Error(err)
	}
	if want := "1:a:77:7:1 2:b:10:4:1 4:c:77:7:1 "; content(t, plain) != want {
		t.Errorf("%s, want %s", content(t, plain), want)
	}
}
