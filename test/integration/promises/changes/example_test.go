package changes_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlfence/sqlfence/changes"
)

// The titles of the books are kept until they change, by this program or another.
func Example() {
	dir, err := os.MkdirTemp("", "sqlfence")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	for _, table := range []string{"books", "authors"} {
		if _, err := db.Exec("CREATE TABLE " + table + " (id integer PRIMARY KEY, title text)"); err != nil {
			log.Fatal(err)
		}
	}
	counter, err := changes.New(db)
	if err == nil {
		err = counter.Setup(ctx, "books", "authors") // once; triggers on these tables
	}
	if err != nil {
		log.Fatal(err)
	}
	cache, left := map[int]string{1: "Emma"}, 2

	for _, err := range counter.Watch(ctx, time.Millisecond, "books", "authors") {
		clear(cache) // first, then after each change; on an error, too
		fmt.Println("cleared", err)
		if left--; left == 0 {
			break
		}
		if _, err := db.Exec("INSERT INTO books (title) VALUES ('Persuasion')"); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// cleared <nil>
	// cleared <nil>
}

// What docs/changes.md shows stands in the example, but for the interval.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, part := range strings.Split(string(page), "```") {
		for line := range strings.Lines(strings.TrimPrefix(part, "go")) {
			line = strings.ReplaceAll(strings.TrimSpace(line), "time.Second", "time.Millisecond")
			if i%2 == 1 && line != "}" && !strings.Contains(string(source), line) {
				t.Errorf("the example lacks %s", line)
			}
			found += i % 2
		}
	}
	if found < 5 {
		t.Errorf("the page has %d lines of code", found)
	}
}
