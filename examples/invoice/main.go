// Invoice is a small web page on which two people may want to edit the same
// invoice. Before editing, the second user learns who is editing the invoice, and since when. An abandoned lock lapses.
// A save of an old version shows the newer changes instead of overwriting them.
//
//	go run ./examples/invoice
//
// Open it in two browsers, as two people.
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
	ttl := flag.Duration("ttl", 2*time.Minute, "how long a lock lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *path, *ttl); err != nil {
		stop()
		log.Fatal(err)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, addr, path string, ttl time.Duration) (err error) {
	if path == "" {
		dir, err := os.MkdirTemp("", "sqlfence-invoice-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "invoices.db")
	}
	db, err := openDB(sqlite.DSN(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := newService(ctx, db, ttl)
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
