package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// miniflux's tests are clients of its server, which runs as a separate process.
var miniflux = application{
	name:     "miniflux",
	module:   "miniflux.app/v2",
	version:  "v2.2.10",
	database: "PostgreSQL (lib/pq)",
	edits: []edit{
		{"internal/database/postgresql.go", "import (\n", "import (\n\tfenced \"%s\"\n"},
		{"internal/database/postgresql.go", `sql.Open("postgres", dsn)`, `fenced.Open("postgres", dsn)`},
	},
	tables: []string{"users", "sessions", "user_sessions", "categories", "feeds", "entries", "enclosures",
		"icons", "feed_icons", "integrations", "api_keys", "acme_cache", "webauthn_credentials"},
	tests: "internal/api",
	start: serveMiniflux,
}

func serveMiniflux(w *workspace, env []string) ([]string, func() (time.Duration, error), error) {
	dsn, drop, err := newDatabase("miniflux")
	if err != nil {
		return nil, nil, err
	}
	binary := filepath.Join(w.dir, "application")
	if err := w.command(os.Stderr, "go", "build", "-o", binary, ".").Run(); err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	address := listener.Addr().String()
	listener.Close()
	env = append(env, "DATABASE_URL="+dsn, "LISTEN_ADDR="+address, "ADMIN_USERNAME=admin", "ADMIN_PASSWORD=test123", "CREATE_ADMIN=1")
	log, err := os.Create(w.dir + ".server.log")
	if err != nil {
		return nil, nil, err
	}
	migrate := w.command(log, binary, "-migrate")
	migrate.Env = append(migrate.Env, env...)
	if err := migrate.Run(); err != nil {
		return nil, nil, fmt.Errorf("migrate: %w", err)
	}
	server := w.command(log, binary)
	server.Env = append(server.Env, env...)
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	site := httptest.NewServer(http.HandlerFunc(feed))
	stop := func() (time.Duration, error) {
		site.Close()
		server.Process.Signal(syscall.SIGTERM)
		var exit *exec.ExitError
		if err := server.Wait(); err != nil && !errors.As(err, &exit) {
			return 0, err
		}
		log.Close()
		return server.ProcessState.UserTime(), drop()
	}
	if err := waitFor("http://" + address + "/healthcheck"); err != nil {
		return nil, nil, errors.Join(err, server.Process.Kill())
	}
	return []string{"TEST_MINIFLUX_BASE_URL=http://" + address, "TEST_MINIFLUX_ADMIN_USERNAME=admin", "TEST_MINIFLUX_ADMIN_PASSWORD=test123",
		"TEST_MINIFLUX_FEED_URL=" + site.URL + "/feed.xml", "TEST_MINIFLUX_WEBSITE_URL=" + site.URL + "/",
		"TEST_MINIFLUX_FEED_TITLE=A feed", "TEST_MINIFLUX_SUBSCRIPTION_TITLE=A feed"}, stop, nil
}

// feed is a site with a feed, for an application that reads feeds.
func feed(w http.ResponseWriter, r *http.Request) {
	site := "http://" + r.Host
	if !strings.HasSuffix(r.URL.Path, ".xml") {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>A site</title><link rel="alternate" type="application/rss+xml" title="A feed" href="/feed.xml"><p>Text</p>`)
		return
	}
	w.Header().Set("Content-Type", "application/rss+xml")
	fmt.Fprintf(w, `<rss version="2.0"><channel><title>A feed</title><link>%s/</link><description>Words</description>`, site)
	for i := range 5 {
		fmt.Fprintf(w, `<item><title>Entry %d</title><link>%s/%d</link><guid>%s/%d</guid><description>Words</description><enclosure url="%s/%d.mp3" length="1" type="audio/mpeg"/></item>`, i, site, i, site, i, site, i)
	}
	fmt.Fprint(w, `</channel></rss>`)
}

func waitFor(address string) error {
	var last error
	for range 2400 { // two minutes
		answer, err := http.Get(address)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(answer.Status)
		}
		last = err
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the server doesn't answer: %w", last)
}
