// Package litestream tests that guards hold while Litestream replicates the SQLite file.
package litestream

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Holders take tokens and write in any order while Litestream replicates the file. The last write must be that of the
// highest token. The database that is restored from the replica must have the newest token.
func TestReplacedHoldersWhileItCopies(t *testing.T) {
	program := need.Program(t, "litestream")
	mattn := harness.Bases[2]
	sh := harness.Setting{Base: mattn}.Shop(t, sqlfence.RowFence("fence_token"), sqlfence.Ledger())
	sh.Reset(t, 0)
	store, err := tokens.New(sh.DB)
	if err != nil {
		t.Fatal(err)
	}
	file, _, _ := strings.Cut(strings.TrimPrefix(sh.Source, "file:"), "?")
	copied := "file://" + filepath.Join(t.TempDir(), "copy")
	copying := exec.Command(program, "replicate", file, copied)
	copying.Stderr = os.Stderr
	if err := copying.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = copying.Process.Kill(); _ = copying.Wait() })
	harness.Eventually(t, "it copies", func() bool {
		generations, _ := filepath.Glob(strings.TrimPrefix(copied, "file://") + "/generations/*/snapshots/*")
		return len(generations) > 0
	})

	var stale, wrote atomic.Int64
	var mu sync.Mutex
	last := sqlfence.Token{} // the highest token that wrote; price is its last value
	price := int64(0)
	var holders sync.WaitGroup
	for g := range 4 {
		holders.Go(func() {
			for i := range 100 {
				old, err := store.Issue(t.Context(), "books")
				if err != nil {
					t.Error(err)
					return
				}
				for try := range 3 {
					mine := int64(1000*g + 10*i + try)
					_, err := sh.DB.ExecContext(sqlfence.WithFence(t.Context(), old), "UPDATE books SET price = ? WHERE id = 1", mine)
					switch {
					case errors.Is(err, sqlfence.ErrStale):
						stale.Add(1)
					case err != nil:
						t.Error(err)
					default:
						wrote.Add(1)
						mu.Lock()
						if old.Value >= last.Value {
							last, price = old, mine
						}
						mu.Unlock()
					}
				}
			}
		})
	}
	holders.Wait()
	t.Logf("%d writes, %d refused as stale", wrote.Load(), stale.Load())
	var stored, mark int64
	if err := sh.Plain.QueryRow("SELECT price, fence_token FROM books WHERE id = 1").Scan(&stored, &mark); err != nil || stored != price || mark != last.Value {
		t.Errorf("price %d of token %d, want %d of %d: %v", stored, mark, price, last.Value, err)
	}
	if stale.Load() == 0 {
		t.Error("no holder was replaced")
	}

	if err := copying.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = copying.Wait()
	restored := filepath.Join(t.TempDir(), "restored.db")
	if out, err := exec.Command(program, "restore", "-o", restored, copied).CombinedOutput(); err != nil {
		t.Fatalf("restoring: %v\n%s", err, out)
	}
	again := mattn.Raw(t, "file:"+restored)
	var token int64
	if err := again.QueryRow("SELECT token FROM fencing_tokens WHERE name = 'books'").Scan(&token); err != nil || token != 400 {
		t.Errorf("restored token %d, %v, want 400", token, err)
	}
	if err := again.QueryRow("SELECT price, fence_token FROM books WHERE id = 1").Scan(&stored, &mark); err != nil || stored != price || mark != last.Value {
		t.Errorf("restored price %d of token %d, want %d of %d: %v", stored, mark, price, last.Value, err)
	}
}
