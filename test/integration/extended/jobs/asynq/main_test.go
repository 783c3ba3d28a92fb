package asynq_test

import (
	"context"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/contrib/fenceasynq"
	"github.com/sqlfence/sqlfence/internal/test/need"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/test/integration/zombie"
	"github.com/sqlfence/sqlfence/tokens"
)

func TestMain(m *testing.M) { zombie.Main(m, workerA) }

// table registers the table that the tasks write.
var table = sqlfence.WithTable("results", sqlfence.Key("job"), sqlfence.Ledger())

// name returns the name of a task's token.
func name(task *asynq.Task) string { return "results/" + string(task.Payload()) }

// socket names the environment variable with the path of Redis's socket. Process A inherits it.
const socket = "SQLFENCE_REDIS_SOCKET"

// startRedis starts a Redis server that ends with the test.
func startRedis(t *testing.T) {
	t.Helper()
	program := need.Program(t, "redis-server")
	dir, err := os.MkdirTemp("", "sqlfence-redis") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "socket")
	server := exec.Command(program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	})
	harness.Eventually(t, "redis-server answers", func() bool {
		c, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	t.Setenv(socket, path)
}

func redis() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Network: "unix", Addr: os.Getenv(socket)}
}

// serve starts a server with a handler of the task write.
func serve(db *sql.DB, handle asynq.HandlerFunc) (*asynq.Server, error) {
	store, err := tokens.New(db)
	if err != nil {
		return nil, err
	}
	mux := asynq.NewServeMux()
	mux.Use(fenceasynq.Middleware(store, name))
	mux.HandleFunc("write", handle)
	server := asynq.NewServer(redis(), asynq.Config{
		Concurrency:              1,
		IsFailure:                fenceasynq.IsFailure,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		TaskCheckInterval:        10 * time.Millisecond,
		DelayedTaskCheckInterval: 10 * time.Millisecond,
		LogLevel:                 asynq.FatalLevel,
	})
	return server, server.Start(mux)
}

// workerA takes the task, pauses inside it, and writes after B has written.
func workerA(w *zombie.Worker) error {
	fenced, err := sqlfence.Open("pgx", w.DSN, table)
	if err != nil {
		return err
	}
	db := fenced
	if !w.Fenced {
		if db, err = sql.Open("pgx", w.DSN); err != nil {
			return err
		}
	}
	ended := make(chan error)
	server, err := serve(fenced, func(ctx context.Context, _ *asynq.Task) error {
		w.Pause()
		err := zombie.Write(ctx, db, "A")
		ended <- err
		return err
	})
	if err != nil {
		return err
	}
	w.Say(zombie.Outcome(<-ended))
	w.Wait()
	server.Shutdown() // returns after asynq has processed the handler's result
	return nil
}
