// Httpservice shows fencing tokens over HTTP. A client requests a token, and sends the token in a header with each
// write. The response is 409 Conflict if a newer token has been issued, and 403 Forbidden for a token that was never
// issued.
//
//	go run ./examples/httpservice
//	curl -i -X POST localhost:8080/tokens/books
//	curl -i -X PUT localhost:8080/books/1/price -H 'Fencing-Token: books:000000000000001' -d '{"price": 30}'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sqlfence/sqlfence/examples/internal/sqlite"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	path := flag.String("db", "", "SQLite file; by default a temporary one, removed at the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *path); err != nil {
		stop()
		log.Fatal(err)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, addr, path string) (err error) {
	if path == "" {
		dir, err := os.MkdirTemp("", "sqlfence-http-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "books.db")
	}
	db, err := openDB(sqlite.Driver, sqlite.DSN(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := newService(ctx, db)
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("serving on http://%s\n", listener.Addr())
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		shutdown, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return server.Shutdown(shutdown)
	}
}
